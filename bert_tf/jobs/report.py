"""Writes the page of one run or of several side by side."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path

from bert_tf import lock
from bert_tf.errors import BertError, FlagError, OutputError
from bert_tf.log_form import log
from bert_tf.run_layout import PAGE

_ELSEWHERE = "write the page elsewhere with --output=FILE"


def start_ahead() -> None:
    """Starts Vega in a thread: the first chart of a process is the slowest."""
    threading.Thread(target=_start, name="start Vega").start()


def _start() -> None:
    with contextlib.suppress(Exception):  # the page fails in the same way, and says so
        from bert_tf.report import drawing, line_chart, scripts

        drawing.svg(line_chart.line_chart([line_chart.Curve("", 0, range(2), range(2))], line_chart.Style()))
        scripts.vega()


def at_end(folder: Path) -> None:
    """Writes the page at the end of a run; failure is only a warning."""
    try:
        from bert_tf.report import page, run_files  # the charts' library is imported when there is something to draw

        page.write(folder / PAGE, run_files.read([folder]))
        log.info("the page of the run is %s", folder / PAGE)
    except Exception as error:
        reason = str(error) if isinstance(error, (BertError, ImportError)) else repr(error)
        log.warning("no %s: %s", PAGE, reason)


def target(folders: Sequence[Path], output: str | None) -> Path:
    """Output file: DIR/report.html, for several runs ./report.html, unless named; FlagError without folders."""
    if not folders:
        raise FlagError("report: name the output folder of a run, or of several to compare")
    return Path(output or (folders[0] / PAGE if len(folders) == 1 else PAGE))


def write(folders: Sequence[Path], output: Path, *, redact: bool = False) -> None:
    """Writes the page of runs; `redact` first removes folders from absolute paths in each run_config.json."""
    from bert_tf.estimator import run_folder
    from bert_tf.report import page, run_files

    runs = run_files.read(folders)
    if redact:
        for run in runs:
            with lock.writing_folder(run.folder, instead="wait until its training has ended"):
                short = run_files.without_folders(run.recorded_command, keep=1)
                run_folder.add_to_record(run.folder, {"command": short} if run.record else {})
        runs = run_files.read(folders)
    into_run = output.parent.resolve() in {folder.resolve() for folder in folders}
    try:
        with lock.writing_folder(output.parent, instead=_ELSEWHERE) if into_run else contextlib.nullcontext():
            page.write(output, runs)
    except ImportError as error:
        raise OutputError(f"{output}: not made: {error}; pip install jinja2 vl-convert-python") from error
