"""Rules of style that no linter holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted((ROOT / "bert_tf").rglob("*.py"))}

# Methods that TensorFlow calls, whose arguments it documents.
TENSORFLOWS = {"after_create_session", "after_run", "after_save"}
ELSEWHERE = re.compile(r"^See `|[Aa]rguments (as for|are those of) `")  # where another docstring has them


def names_of(function: ast.FunctionDef, *, is_method: bool) -> tuple[str, ...]:
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = [arg.arg for arg in [*given, *filter(None, (arguments.vararg, arguments.kwarg))]]
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in function.decorator_list)
    return tuple(names[1:] if is_method and not static else names)


def is_public(function: ast.FunctionDef) -> bool:
    return function.name == "__init__" or not function.name.startswith("_")


def functions(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, ast.FunctionDef, tuple[str, ...]]]:
    """Yields public functions and methods, not their overloads: the dotted name, the function, the names of its arguments."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node.body, f"{owner}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and is_public(node) and "overload" not in map(ast.unparse, node.decorator_list):
            yield owner + node.name, node, names_of(node, is_method=bool(owner))


def of_protocols(tree: ast.Module) -> set[tuple[str, tuple[str, ...]]]:
    """Returns name and arguments of the methods that protocols describe."""
    kinds = [node for node in tree.body if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)]
    return {(node.name, names) for kind in kinds for _, node, names in functions(kind.body, ".")}


def without_args(tree: ast.Module, described: set[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    own = of_protocols(tree)
    for name, node, arguments in functions(tree.body):
        text = ast.get_docstring(node) or ""
        elsewhere = node.name in TENSORFLOWS or (node.name, arguments) in described - own
        if len(arguments) > 1 and "Args:" not in text and not elsewhere and not ELSEWHERE.search(text):
            yield name


DESCRIBED = set().union(*map(of_protocols, TREES.values()))


def test_two_arguments_or_more_are_described():
    assert [f"{path}: {name}" for path, tree in TREES.items() for name in without_args(tree, DESCRIBED)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('def pair(a, b):\n  """Pairs."""', ["pair"]),
        ('def pair(a, *, b):\n  """Pairs.\n\n  Args:\n    a: one.\n    b: other.\n  """', []),
        ('def pair(a, b):\n  """See `pairs`."""', []),
        ('def pair(a, b):\n  """As a list; arguments as for `pairs`."""', []),
        ('def pair(a, b):\n  """As a list, see `pairs`."""', ["pair"]),
        ('class Pair:\n  def put(self, a, b):\n    """Puts."""\n  def one(self, a):\n    """One."""', ["Pair.put"]),
        ('class Pair:\n  def called(self, a, b):\n    """Puts."""', []),
        ('class Hook:\n  def after_run(self, run_context, run_values):\n    """Ends."""', []),
        ("@overload\ndef pair(a, b): ...", []),
        ('def _pair(a, b):\n  """Pairs."""', []),
    ],
)
def test_notices_arguments_that_are_not_described(text, found):
    assert list(without_args(ast.parse(text), {("called", ("a", "b"))})) == found


def test_nobody_calls_functions_of_absl_that_configure_the_log_of_a_program():
    """They add a handler to the root logger where it has none; `log_form.log` does not."""
    calls = re.compile(r"^(absl_)?logging\.(debug|info|warning|error|exception|log|vlog|fatal)$")

    def called(tree):
        return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    def uses_absl(tree):
        return any(isinstance(node, ast.ImportFrom) and node.module == "absl" for node in ast.walk(tree))

    assert not [str(path) for path, tree in TREES.items() if uses_absl(tree) and any(map(calls.match, called(tree)))]
