"""The report at the end of a run."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from bert_tf import run_layout
from bert_tf.errors import BertError
from bert_tf.io.log_form import log
from bert_tf.profiling.wall_clock import WALL

_OF_RUNS = (run_layout.RECORD, run_layout.METRICS, run_layout.RESULTS)


def prepare() -> None:
    """Starts Vega in a thread: the first chart of a process is the slowest."""
    threading.Thread(target=_start_vega, name="start Vega").start()


def _start_vega() -> None:
    with contextlib.suppress(Exception):  # `write` reports the same failure
        from bert_tf.extensions.report import charts, scripts

        charts.svg(charts.line_chart([charts.Curve("", 0, range(2), range(2))]))
        scripts.vega()


@WALL.span("page")
def write(folder: Path) -> None:
    """Writes the page of a run, if the folder holds more than predictions; failure is only a warning."""
    if not any((folder / name).is_file() for name in _OF_RUNS):
        return
    try:
        from bert_tf.extensions.report import page, run_files  # imports the chart library only when needed

        page.write(folder / run_layout.PAGE, run_files.read_runs([folder]))
        log.info("the report is %s", folder / run_layout.PAGE)
    except Exception as error:
        reason = str(error) if isinstance(error, (BertError, ImportError)) else repr(error)
        log.warning("no %s: %s", run_layout.PAGE, reason)
