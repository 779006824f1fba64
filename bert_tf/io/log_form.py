"""A command's log in one of two forms: short, for people, or that of the published script.

Lines of `log`, absl's logger, appear in both; a line of one form goes to that form's logger. These are children of `log`:
absl's verbosity governs them. A program has the short form unless it asks for the other.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
from collections.abc import Iterator

from absl import logging as absl_logging
from absl.logging import converter
from tqdm import tqdm

_HIDDEN = "***"
_USER = re.compile(r"(?<=://)[^\s/?#:@]*:[^\s/?#]*@")  # user:password@ of an address
_TOKEN = re.compile(r"(https?://)[^\s/?#]+@", re.IGNORECASE)
_QUERY = re.compile(r"([?&](?:password|passwd|pwd|token|secret|api_?key)=)[^\s&'\"]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """Returns a text without the passwords of its addresses."""
    if "://" not in text:
        return text
    text = _TOKEN.sub(rf"\1{_HIDDEN}@", _USER.sub(f"{_HIDDEN}@", text))
    return _QUERY.sub(rf"\1{_HIDDEN}", text)


FORMS = SHORT, PUBLISHED = ("short", "published")

# absl's functions would add a handler to a program without one (logging.basicConfig); its logger does not.
log: logging.Logger = absl_logging.get_absl_logger()
short, published = log.getChild(SHORT), log.getChild(PUBLISHED)


def choose(form: str) -> None:
    short.disabled, published.disabled = form != SHORT, form != PUBLISHED


choose(SHORT)


@contextlib.contextmanager
def chosen(form: str, verbosity: int | None) -> Iterator[None]:
    """Lets a call of a program log in a form, and at an absl verbosity if given; the program's handlers write the lines."""
    choose(form)
    level = log.level
    if verbosity is not None:
        log.setLevel(converter.absl_to_standard(verbosity))  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        log.setLevel(level)
        choose(SHORT)


def set_up(form: str, verbosity: int) -> None:
    """Logs to standard error; a later call replaces an earlier one.

    SHORT lines start with the time, the first of a day with its date; PUBLISHED ones, as absl's, with level, time, thread, file
    and line. At absl verbosity above 0 both name the source line.
    """
    choose(form)
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, (_AboveBar, absl_logging.ABSLHandler)):
            root.removeHandler(handler)
    of_tensorflow = logging.getLogger("tensorflow")
    for stream_handler in [handler for handler in of_tensorflow.handlers if type(handler) is logging.StreamHandler]:
        of_tensorflow.removeHandler(stream_handler)  # if imported before, as in a notebook, TensorFlow also writes each line
    tqdm.set_lock(threading.RLock())  # the default also serves processes, and is reported as leaked without fork
    handler = _AboveBar()
    handler.setFormatter(_Plain() if form == SHORT and verbosity <= 0 else absl_logging.PythonFormatter())
    root.addHandler(handler)
    absl_logging.set_verbosity(verbosity)
    absl_logging.get_absl_logger().setLevel(logging.NOTSET)  # the root's level counts, as for all loggers
    root.setLevel(converter.absl_to_standard(verbosity))  # type: ignore[no-untyped-call]


class _AboveBar(logging.Handler):
    """Writes lines to standard error, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            with tqdm.external_write_mode(sys.stderr):
                print(redacted(self.format(record)), file=sys.stderr, flush=True)  # noqa: T201
        except Exception:
            self.handleError(record)


class _Plain(logging.Formatter):
    """Time and text: 12:34:56 warning: ...; the first line of a day also has its date."""

    _day = ""  # of the last line

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        day, time = self.formatTime(record, "%Y-%m-%d %H:%M:%S").split()
        shown, self._day = time if day == self._day else f"{day} {time}", day
        return f"{shown} {level}{record.message}"
