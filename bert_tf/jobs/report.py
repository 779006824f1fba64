"""The page of a run at its end."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from bert_tf.errors import BertError
from bert_tf.log_form import log
from bert_tf.run_layout import PAGE


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
