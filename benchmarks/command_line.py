"""The benchmark command: this package and others, taking turns in one run."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from benchmarks import texts
from benchmarks.comparisons import COMPARISONS, DEFAULT_SUITES, PEERS, SUITES, Comparison
from benchmarks.figures import DEFAULT, SIZES
from benchmarks.whole_command import SAMPLE
from bert_tf.cli.command_line import Flag, by_name, parse_flags
from bert_tf.cli.help import filled, flag_lines
from bert_tf.cli.process import reports_go_to, run_command, setup_logging
from bert_tf.errors import FlagError, unknown_name
from bert_tf.io import atomic
from bert_tf.training.settings import ModelSettings

if TYPE_CHECKING:
    from benchmarks.materials import Source

_OF_FOLDERS = ("GLUE_DIR", "SQUAD_DIR", "CONLL_DIR", "SWAG_DIR", "CORPUS_DIR")  # environment variables

OF_TASKS = tuple(name for name in texts.TASKS if name != texts.MRPC)

FLAGS = (
    Flag("suites", str, ",".join(DEFAULT_SUITES), f"what to measure, of {','.join(SUITES)}"),
    Flag("peers", bool, False, "measure other libraries too; `make benchmark-env` installs them"),
    Flag("peer_python", str, None, f"their interpreters, NAME=PATH,...; else .peers/NAME/bin/python of {', '.join(PEERS)}"),
    Flag(
        "other_python", str, None, "for the suites versions-*: interpreter with this package's requirements, of other versions"
    ),
    Flag("data_dir", str, None, "folder of MRPC; else the bundled sample. SST-2 beside it serves the suite features"),
    Flag("task_data", str, None, f"folders of other tasks, NAME=FOLDER,... of {', '.join(OF_TASKS)}; else the bundled samples"),
    Flag("sizes", str, f"{DEFAULT},base", "models: default (the checkpoint), base (random weights)"),
    Flag("rounds", int, 5, "how often each contender is measured", 1),
    Flag("steps", int, 20, "training steps of one turn", 1),
    Flag("threads", int, 2, "of each contender", 1, highest=1024),
    Flag("output_dir", str, "benchmarks", "folder of results/, results.md and scaling.png"),
)


def run_tool(action: Callable[[], int], about: str, flags: Sequence[Flag], stopped: str) -> int:
    """Runs a command of the benchmarks; --help says what it is about, and lists the flags."""

    def help_text() -> str:
        return "\n".join([*filled(about), "", *flag_lines(flags), ""])

    return run_command(action, help_text=help_text, stopped=stopped)


def main(argv: Sequence[str]) -> int:
    command = _by_variables(shlex.join(["python", "-m", "bert_tf", "benchmark", *argv[1:]]))
    about = "Measures speed and memory of this package beside others: python -m bert_tf benchmark --peers"
    stopped = "stopped; the output folder holds the comparisons that were finished"
    return run_tool(lambda: _run(parse(argv), command), about, FLAGS, stopped)


def parse(argv: Sequence[str]) -> SimpleNamespace:
    given = by_name(parse_flags(argv, FLAGS), FLAGS)
    given["suites"] = _names("suite", given["suites"], SUITES)
    given["sizes"] = _names("size", given["sizes"], (DEFAULT, *SIZES))
    given["task_data"] = _named_paths("task", "task_data", given["task_data"], OF_TASKS)
    given["peer_python"] = _named_paths("peer", "peer_python", given["peer_python"], PEERS)
    for name, path in given["peer_python"].items():
        if not Path(path).is_file():
            raise FlagError(f"--peer_python: {name}={path!r}: no such interpreter; write {name}=/path/to/bin/python")
    if given["other_python"] and not Path(given["other_python"]).is_file():
        raise FlagError(f"--other_python={given['other_python']}: no such interpreter")
    return SimpleNamespace(**given)


def _names(kind: str, text: str, known: Iterable[str]) -> tuple[str, ...]:
    known = tuple(known)
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in known:
            raise FlagError(f"--{kind}s: {unknown_name(kind, name, known)}")
    if not names:
        raise FlagError(f"--{kind}s: name at least one of {', '.join(known)}")
    return names


def _named_paths(kind: str, flag: str, text: str | None, known: Iterable[str]) -> dict[str, str]:
    entries = [entry.partition("=") for entry in (text or "").split(",") if entry]
    for name, _, _ in entries:
        if name not in known:
            raise FlagError(f"--{flag}: {unknown_name(kind, name, known)}")
    return {name: path for name, _, path in entries}


def _stop(*_: object) -> None:
    """Ends the run on SIGTERM as Ctrl-C does, so that no worker is left behind."""
    raise KeyboardInterrupt


def _run(settings: SimpleNamespace, command: str) -> int:
    setup_logging(verbosity=0)
    from benchmarks import report, results  # TensorFlow, and what imports it, waits until it is needed: --help is quick
    from benchmarks.materials import Materials
    from benchmarks.stage import Bench
    from benchmarks.workers import Environments

    comparisons = tuple(row for row in COMPARISONS if row.suite in settings.suites and row.size in settings.sizes)
    if not comparisons:
        raise FlagError("no comparison of these --suites has one of these --sizes")
    output_dir = atomic.make_folder(settings.output_dir)
    reports_go_to(output_dir)
    source, data = _source(settings, comparisons)
    environments = Environments.found(settings.peer_python, peers=settings.peers, other=settings.other_python)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with tempfile.TemporaryDirectory(prefix="bert_tf-benchmark-") as scratch:
            materials = Materials(Path(scratch), source)
            bench = Bench(materials, environments, settings.rounds, settings.steps, settings.threads)
            results.run(comparisons, bench, output_dir, command=command, data=data)
    finally:
        signal.signal(signal.SIGTERM, before)
    print((output_dir / report.NAME).read_text(encoding="utf-8"), end="")
    return 0


def _source(settings: SimpleNamespace, comparisons: Iterable[Comparison]) -> tuple[Source, str]:
    from benchmarks import materials
    from bert_tf.config import BertConfig
    from bert_tf.tasks.registry import get_task
    from bert_tf.tokenization.vocabulary import Vocabulary
    from bert_tf.training import sources

    folders = {texts.MRPC: settings.data_dir or os.fspath(SAMPLE), **settings.task_data}
    tasks = {name: get_task(name) for name in dict.fromkeys(texts.TEXTS[row.texts].task for row in comparisons)}
    found = {name: sources.find_data(task, folders.get(name), environment={}) for name, task in tasks.items()}
    model = sources.find_model(ModelSettings(), environment=os.environ)
    config, vocabulary = BertConfig.from_json_file(model.config), Vocabulary.from_file(model.vocabulary)
    described = [sources.SAMPLE_NOTE if data.is_sample else os.fspath(data.folder) for data in found.values()]
    of_tasks = {name: (task, found[name].folder) for name, task in tasks.items()}
    source = materials.Source(of_tasks, config, vocabulary, model.checkpoint)
    return source, _by_variables(f"{', '.join(dict.fromkeys(described))}; weights: {model.origin}")


def _by_variables(text: str) -> str:
    """Replaces folders in a text by the environment variables that hold them."""
    for name in _OF_FOLDERS:
        folder = os.environ.get(name)
        text = text.replace(folder, f"${name}") if folder else text
    return text
