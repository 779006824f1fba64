"""Imports go only downward; read off the syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bert_tf import extension

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bert_tf"
BENCHMARKS = ROOT / "benchmarks"
PEERS = BENCHMARKS / "peers"  # scripts that run in other environments, without this package

# Rooms from the bottom up. A room imports from rows above it in this table; rooms of one row do not see each other.
# Within layer 1 the order is tokenization, features, tasks: each may see those to its left.
LAYERS = (
    ("errors", "position_kinds", "versions"),
    ("encoders", "extension", "extras"),
    ("io",),
    ("config", "fields", "head_spec", "home", "run_layout", "seeds", "settings"),
    ("kinds",),
    ("metrics", "tokenization"),
    ("features",),
    ("tasks",),
    ("graphs", "variables"),
    ("native",),
    ("modeling", "optimization", "checkpoints", "runtime", "profiling"),
    ("estimator",),
    ("batch",),
    ("training",),
    ("library",),
    ("operations",),
    ("extensions",),
    ("cli",),
    ("__main__",),
)
RANK = {room: rank for rank, row in enumerate(LAYERS) for room in row}
# What only these rooms may import or touch.
WITHOUT_TENSORFLOW = {room for room, rank in RANK.items() if rank < RANK["graphs"]}
TOUCHES_MACHINE = {"runtime"}
# Each does without where TensorFlow has dropped the name, and a test fails then; the last is of types alone.
PRIVATE = {
    "estimator/pipeline.py",
    "estimator/saver.py",
    "extensions/profile/step_stats.py",
    "runtime/devices.py",
    "checkpoints/saved.py",
    "variables.py",
}
# Lower rooms that a room is kept from all the same: the encoder knows no task, optimizer and runtime no data.
KEPT_FROM = {
    "native": {"tasks", "features", "tokenization"},
    "modeling": {"tasks", "features", "tokenization"},
    "optimization": {"tasks", "features"},
    "runtime": {"tasks", "features"},
}
# What the benchmark sees of the package, beside its own contenders: those run what is measured.
SEEN_BY_BENCHMARKS = {
    *("__version__", "io", "errors", "config", "checkpoints", "features", "tasks", "tokenization"),
    *("cli", "extensions", "head_spec", "operations", "training", "metrics", "profiling", "seeds"),
}
OWN_CONTENDERS = {"worker.py"}


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields line and full name of everything imported, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def violations(path: Path, tree: ast.AST) -> Iterator[str]:
    own, place = room(path), path.relative_to(ROOT)
    for line, name in imports(tree):
        parts = name.split(".")
        where = f"{place}:{line}"
        if parts[0] == "benchmarks":
            yield f"{where}: {own} imports the benchmark"
        if parts[0] == "bert_tf" and len(parts) > 1 and parts[1] in RANK:
            other = parts[1]
            if other != own and RANK[other] >= RANK[own]:
                yield f"{where}: {own} imports {other}"
            elif other in KEPT_FROM.get(own, ()):
                yield f"{where}: {own} is kept from {other}"
        if parts[0] in ("tensorflow", "tensorflow_text") and own in WITHOUT_TENSORFLOW:
            yield f"{where}: {own} imports TensorFlow"
        if name.startswith("tensorflow.python") and str(path.relative_to(PACKAGE)) not in PRIVATE:
            yield f"{where}: {own} imports what TensorFlow keeps private"
        if name.startswith("absl.flags") and own != "cli":
            yield f"{where}: {own} reads flags"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            text = f"{node.value.id}.{node.attr}"
            where = f"{place}:{node.lineno}"
            if text in ("tf.config", "tf1.ConfigProto") and own not in TOUCHES_MACHINE:
                yield f"{where}: {own} touches {text}"
            if text in ("json.dumps", "json.dump") and path.name != "documents.py":
                yield f"{where}: {own} writes JSON, which `io.documents` keeps free of NaN"
            if own == "training" and text in ("os.environ", "sys.argv", "sys.exit", "sys.stdout", "sys.stderr"):
                yield f"{where}: {own} touches {text}, which a job is given or leaves to a command"
            if text == "tf.estimator" and path != PACKAGE / "estimator" / "api.py":
                yield f"{where}: {own} uses {text}"


def test_imports_go_downward():
    assert [line for path in modules() for line in violations(path, ast.parse(path.read_text()))] == []


# An exported model is used by these, where TensorFlow is not installed; what they import at their top must do without, too.
USED_WITHOUT_TENSORFLOW = (
    *("__main__", "library.loading", "library.model", "operations.predict"),
    *("extensions.evaluate.command", "extensions.evaluate.evaluation"),
    *("tokenization.library", "checkpoints.model_formats", "batch.session", "batch.stream", "training.batch_machine"),
    *("extensions.serve.command", "extensions.serve.server", "extensions.serve.app", "extensions.serve.worker"),
    *("extensions.export.model_format", "extensions.export.exported_model", "extensions.export.onnx_engine"),
    *("extensions.serve.workers", "extensions.serve.preloaded_engine"),
    *("extensions.together.engine", "extensions.together.predict"),
    *("extensions.vectors.encode", "extensions.vectors.text_encoder", "extensions.vectors.search"),
    *("extensions.calibrate.fit", "extensions.calibrate.command", "extensions.span.family", "extensions.tags.family"),
    *("extensions.choice.family", "extensions.similarity.family"),
)


def at_its_top(module: str) -> Iterator[str]:
    """Yields what a module of the package imports when it is imported; names of attributes are tried as modules."""
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(path.read_text()).body if path.is_file() else []
    for _, name in imports(ast.Module([node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))], [])):
        yield name
        yield name.rpartition(".")[0]


def test_an_exported_model_is_used_without_tensorflow():
    waiting, seen = list(USED_WITHOUT_TENSORFLOW), {}
    while waiting:
        module = waiting.pop()
        for name in at_its_top(module):
            assert name.partition(".")[0] not in ("tensorflow", "tensorflow_text"), (module, seen.get(module))
            inner = name.partition("bert_tf.")[2]
            if inner and inner not in seen:
                seen[inner] = module  # that imports it
                waiting.append(inner)
    assert {"tasks.base", "tokenization.tokenizer", "features.columns", "batch.trained"} <= set(seen)


def test_every_room_has_a_rank():
    assert {room(path) for path in modules()} <= set(RANK)


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("modeling/x.py", "from bert_tf.checkpoints import saved", "modeling imports checkpoints"),
        ("modeling/x.py", "from bert_tf.tasks import glue", "modeling is kept from tasks"),
        ("tasks/x.py", "import tensorflow as tf", "tasks imports TensorFlow"),
        ("estimator/x.py", "tf.config.list_physical_devices()", "estimator touches tf.config"),
        ("features/x.py", "from absl import flags", "features reads flags"),
        ("features/x.py", "from bert_tf.tasks import base", "features imports tasks"),
        ("batch/x.py", "json.dumps({})", "batch writes JSON"),
        ("training/x.py", "os.environ", "training touches os.environ"),
        ("training/x.py", "from bert_tf.cli import help", "training imports cli"),
        ("cli/x.py", "from benchmarks import plot", "cli imports the benchmark"),
    ],
)
def test_names_file_line_and_rule(path, code, message):
    broken = list(violations(PACKAGE / path, ast.parse(code)))
    assert len(broken) == 1
    assert broken[0].startswith(f"bert_tf/{path}:")
    assert message in broken[0]


def benchmark_violations(path: Path, tree: ast.AST) -> Iterator[str]:
    for line, name in imports(tree):
        top, *inner = name.split(".")
        where = f"{path.relative_to(ROOT)}:{line}"
        if PEERS in path.parents and top in ("bert_tf", "benchmarks"):
            yield f"{where}: a peer imports {name}"
        if top == "bert_tf" and any(part.startswith("_") and not part.endswith("__") for part in inner):
            yield f"{where}: imports {name}, which is not public"
        if top == "bert_tf" and inner and path.name not in OWN_CONTENDERS and inner[0] not in SEEN_BY_BENCHMARKS:
            yield f"{where}: imports {inner[0]}"


def test_the_benchmark_sees_the_package_from_outside():
    assert [line for path in BENCHMARKS.rglob("*.py") for line in benchmark_violations(path, ast.parse(path.read_text()))] == []


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("peers/x.py", "from bert_tf import errors", "a peer imports bert_tf.errors"),
        ("worker.py", "from bert_tf.estimator.run import _fit", "imports bert_tf.estimator.run._fit, which is not public"),
        ("report.py", "from bert_tf.estimator import run", "imports estimator"),
    ],
)
def test_names_what_the_benchmark_must_not_see(path, code, message):
    assert [line.partition(": ")[2] for line in benchmark_violations(BENCHMARKS / path, ast.parse(code))] == [message]


COMMANDS = "|".join(sorted({name.partition(" ")[0] for name in extension.commands()}, key=len, reverse=True))
ADVISES = re.compile(rf"(python -m bert_tf|bert-tf) ({COMMANDS})\b|--encode\b|bert_tf\.encoder\b")


def advising(tree: ast.AST) -> Iterator[int]:
    """Lines of texts that name a command of an extension, except what `extension.advice` is asked for."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "extension.advice":
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ADVISES.search(node.value):
            yield node.lineno
        yield from advising(node)


def test_the_core_advises_commands_of_extensions_only_if_they_are_there():
    core = (path for path in modules() if room(path) != "extensions")
    assert [f"{path.name}:{line}" for path in core for line in advising(ast.parse(path.read_text()))] == []


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ('log(f"see python -m bert_tf data fetch {name}")', [1]),
        ('x = 1\nHINT = "bert-tf memory plan"', [2]),
        ('extension.advice("devices", "python -m bert_tf devices says why")', []),
        ('"python -m bert_tf predict"', []),
    ],
)
def test_finds_advice_that_does_not_ask(code, lines):
    assert list(advising(ast.parse(code))) == lines
