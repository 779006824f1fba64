"""Report: the HTML page of one run, or of several side by side."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import html
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import run_layout
from bert_tf.errors import DataError, FlagError, OutputError
from bert_tf.io import atomic, files, lock
from bert_tf.io.files import PIPE
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.run_layout import EXPLANATIONS, PAGE, WRONG_EXAMPLES
from bert_tf.settings import read_settings, setting

if TYPE_CHECKING:
    from bert_tf.extensions.report.run_files import Run
    from bert_tf.library.model import Model

_HEIGHT = 600  # pixels of a notebook


@dataclasses.dataclass(frozen=True)
class ReportSettings:
    folders: tuple[str, ...] = setting(
        None, "output folder of one or several runs", positional=True, required=True, refuse_missing=files.refuse_missing_folder
    )
    output: str | None = setting(
        None, "file to write, - for standard output; default: DIR/report.html, or ./report.html for several DIRs", written=True
    )
    redact: bool = setting(
        False, "first shorten absolute paths in run_config.json to .../NAME, to share DIR; this cannot be undone"
    )
    explain: int = setting(
        0,
        "first score the words of the N (up to 50) most confident mistakes of each dev split (docs/explain.md)",
        lowest=0,
        highest=50,
    )
    data_dir: str | None = setting(
        None, "with --explain: folder of the task's files; default: $GLUE_DIR/TASK, data/TASK or the sample"
    )

    def __post_init__(self) -> None:
        if self.data_dir is not None and not self.explain:
            raise FlagError("--data_dir: only --explain=N reads data; add it, or leave this out")


@dataclasses.dataclass(frozen=True)
class Page:
    """A written report, displayed by notebooks.

    Attributes:
      path: of the self-contained file.
    """

    path: Path

    def _repr_html_(self) -> str:
        contents = html.escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{contents}" width="100%" height="{_HEIGHT}" style="border: 0"></iframe>'


@takes()
def write_report(
    *folders: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    redact: bool = False,
    explain: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
) -> Page:
    """Writes the report of a run, or of several side by side; as `python -m bert_tf report`.

    Args:
      *folders: output folders of the runs.
      output: file to write; by default report.html in the folder, for several in the current one.
      redact: first cuts absolute paths in the runs' `run_config.json` to `.../NAME`, irreversibly.
      explain: first scores the words of this many mistakes of each dev split.
      data_dir: with `explain` the folder of the task's files; by default as the command finds it.

    Raises:
      BertError: a folder holds no run, or the file cannot be written.
    """
    values = {"output": output, "redact": redact, "explain": explain, "data_dir": data_dir}
    return write(read_settings(ReportSettings, {"folders": folders or None, **values}))


def write(settings: ReportSettings) -> Page:
    """Writes the page of runs, after changes to their folders that `redact` and `explain` ask for."""
    from bert_tf.estimator import run_folder
    from bert_tf.extensions.report import page, run_files

    folders = [Path(folder) for folder in settings.folders]
    if settings.output is not None:
        run_layout.refuse_own_file(settings.output, allowed=PAGE)
    named = "/dev/stdout" if settings.output == PIPE else settings.output
    output = Path(named or (folders[0] / PAGE if len(folders) == 1 else PAGE))
    is_own = settings.output is None and len(folders) == 1
    if not is_own and output.is_file() and not atomic.is_written_into(output):
        page.refuse_other(output)
    runs = run_files.read_runs(folders)
    if settings.redact:
        for run in runs:
            with lock.writing_folder(run.folder, instead="wait until its training has ended"):
                for folder in (run.folder, *(run.folder / name for name in run_layout.MODELS)):  # these have copies
                    record = run_folder.load_record(folder)
                    if record:
                        command = str(record.get("command", ""))
                        short = run_files.without_folders(command, keep=1, mark=run_files.CUT)
                        run_folder.add_to_record(folder, {"command": short})
    if settings.explain:
        for run in runs:
            _explain(run, settings)
    if settings.redact or settings.explain:
        runs = run_files.read_runs(folders)
    into_run = output.parent.resolve() in {folder.resolve() for folder in folders}
    elsewhere = "write the page elsewhere with --output=FILE"
    try:
        with lock.writing_folder(output.parent, instead=elsewhere) if into_run else contextlib.nullcontext():
            page.write(output, runs, follows=settings.output is not None)
    except ImportError as error:
        raise OutputError(f"{output}: not made: {error}; pip install jinja2 vl-convert-python") from error
    return Page(output)


def _explain(run: Run, settings: ReportSettings) -> None:
    """Writes explanations.jsonl: scores of the words of a run's most confident mistakes, by split."""
    from bert_tf.library.loading import load  # imports TensorFlow
    from bert_tf.tasks.predictions import json_lines
    from bert_tf.training.results import split_and_average

    mistakes = run.own.wrong if run.own else None
    if mistakes is None:
        raise OutputError(f"{run.folder}: no {WRONG_EXAMPLES} to explain; evaluate the run first, with --do_eval")
    with load(run.folder, data_dir=settings.data_dir) as model, lock.writing_folder(run.folder):
        own = [line for line in mistakes if not split_and_average(str(line.get("split")))[1]]
        by_split = itertools.groupby(own, lambda line: str(line.get("split")))
        lines = [line for split, each in by_split for line in _explained(run, model, split, list(each)[: settings.explain])]
        atomic.write_text(run.folder / EXPLANATIONS, json_lines(lines))


def _explained(run: Run, model: Model, split: str, mistakes: list[Any]) -> Iterator[dict[str, Any]]:
    from bert_tf.extensions.report import run_files

    examples = model.examples(split)
    by_id, counts = {example.guid: example for example in examples}, collections.Counter(example.guid for example in examples)
    ids = [mistake.get("id") for mistake in mistakes]
    missing = [name for name in ids if name not in by_id]
    if missing:
        kind = run_files.numbered(run.folder)
        remedy = "name the data of the run with --data_dir" if model.task.reads_folder else "evaluate again, with --do_eval"
        if kind is not None and kind.differ_in:
            remedy = "the rows of a fold are rows of train; give their texts to python -m bert_tf explain"
        raise DataError(f"{split} has no example {missing[0]}; {remedy}", WRONG_EXAMPLES)
    repeated = next((name for name in ids if counts[name] > 1), None)
    if repeated is not None:
        raise DataError(
            f"{repeated!r} is the id of {counts[repeated]} rows of {split}; which to explain is unknown", WRONG_EXAMPLES
        )
    for explanation in model.session("explain", "--explain").explain([by_id[name] for name in ids]):
        yield {"split": split, **dataclasses.asdict(explanation)}


def _print(call: Call) -> None:
    path = write(call.settings).path
    if not atomic.is_written_into(path):  # nothing but the page belongs there
        print(path)


COMMAND = Command(
    "Writes the HTML report of a run, or of several side by side (docs/profiling.md).",
    ReportSettings,
    _print,
    example="python -m bert_tf report out/mrpc out/mrpc-lamb --output=both.html",
    note="A folder is the --output_dir of a training; a folder of --seeds is one line (mean and band),"
    " DIR/seed-* one line each. While it trains, add --output=FILE.",
    stopped="stopped; no page was written",
    log=warnings_only,
)
