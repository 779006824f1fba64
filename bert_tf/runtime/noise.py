"""Keeps TensorFlow's own messages out of the user's log.

Since TensorFlow 2.17 its libraries write to standard error before they read TF_CPP_MIN_LOG_LEVEL (tensorflow#100442). Standard
error is therefore redirected to a file during the import; afterwards, the lines that the variable allows are printed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from bert_tf import home

LEVEL = "TF_CPP_MIN_LOG_LEVEL"

_STDERR = 2
_HEADING = b"WARNING: All log messages before absl::InitializeLog()"
# "I0000 00:00:1795446098.248589   24071 port.cc:153] ...", and "2025-09-17 14:44:05.157831: I external/...".
_LINE = re.compile(rb"(?:[\d-]{10} [\d:.]+: (?=[IWEF] )|(?=[IWEF]\d{4} ))([IWEF])")
_SEVERITIES = b"IWEF"
_FLAGS_OF_ONE_CPU = 1 << 14  # bytes of /proc/cpuinfo
_SAID_BETTER = re.compile(r"Initialize variable ")  # one line per variable; the list of variables is better
_OURS = re.compile(rf"[/\\](tensorflow|tensorflow_estimator|keras)[/\\]|{re.escape(str(home.PACKAGE) + os.sep)}")
_DEPRECATED = re.compile(r"From .* deprecated", re.DOTALL)  # the Estimator, at each call


def quiet_before_import() -> None:
    """Silences C++ messages; only effective before TensorFlow's import. A variable set by the user stays."""
    os.environ.setdefault(LEVEL, "3")


def quiet_python() -> None:
    """Silences Python messages except errors and warnings that a user can act on."""
    _hear_tensorflow(logging.WARNING, _not_deprecated)


def quiet_for_programs() -> None:
    """Silences messages about this package's and TensorFlow's own calls, not about the program's."""
    quiet_before_import()
    _hear_tensorflow(None, _of_others)


def hear_python() -> None:
    _hear_tensorflow(logging.NOTSET, _not_said_better)


def _hear_tensorflow(level: int | None, heard: Callable[[logging.LogRecord], bool]) -> None:
    logging.getLogger("h5py").setLevel(logging.ERROR)
    logger = logging.getLogger("tensorflow")
    if level is not None:
        logger.setLevel(level)
    for earlier in (_not_deprecated, _not_said_better, _of_others):
        logger.removeFilter(earlier)
    logger.addFilter(heard)
    warnings.filterwarnings("ignore", module=r"(tensorflow|tensorflow_estimator|keras|absl)(\.|$)")


def _not_deprecated(record: logging.LogRecord) -> bool:
    return not _DEPRECATED.match(record.getMessage())


def _not_said_better(record: logging.LogRecord) -> bool:
    return not _SAID_BETTER.match(record.getMessage())


def _of_others(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if _DEPRECATED.match(message):
        return not _OURS.search(message.partition(" is deprecated")[0])
    return record.levelno >= logging.WARNING or not _OURS.search(record.pathname)


class _HeldBack:
    """Withholds the process's standard error in a block, shared between threads; an exception prints all of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._min_severity = _min_severity()
                if self._min_severity:
                    self._hold()
            self._blocks += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            if kind is not None:
                self._min_severity = 0
            self._blocks -= 1
            if not self._blocks and self._file is not None:
                self._print(self._file)
                self._file = None

    def _hold(self) -> None:
        with contextlib.suppress(OSError):  # closed, or nothing can be written here: nothing is withheld
            file = _file()
            self._terminal = os.dup(_STDERR)
            _flush()
            os.dup2(file.fileno(), _STDERR)
            self._file = file

    def _print(self, file: BinaryIO) -> None:
        _flush()
        os.dup2(self._terminal, _STDERR)
        os.close(self._terminal)
        with file, contextlib.suppress(OSError):  # nobody reads standard error
            file.seek(0)
            for line in file:
                if allowed(line, self._min_severity):
                    os.write(_STDERR, line)

    def release_child(self) -> None:
        """Restores standard error in a forked process; the parent prints the withheld text."""
        if self._file is not None:
            os.dup2(self._terminal, _STDERR)
        self._lock, self._blocks, self._file = threading.Lock(), 0, None


def allowed(line: bytes, min_severity: int) -> bool:
    """Whether to print a line: severe enough (0 info to 3 fatal), or not from TensorFlow's log."""
    match = _LINE.match(line)
    severe = match is None or _SEVERITIES.index(match[1]) >= min_severity
    return severe and not (min_severity and line.startswith(_HEADING))


def _min_severity() -> int:
    text = os.environ.get(LEVEL, "0")
    return int(text) if text.isdecimal() and not _is_too_old() else 0


def _is_too_old() -> bool:
    """Whether the CPU lacks AVX: the libraries then abort with a message that would be lost if withheld."""
    if platform.machine() != "x86_64":
        return False
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open("rb") as file:
        return b" avx " not in file.read(_FLAGS_OF_ONE_CPU)
    return False


def _file() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stderr"), "w+b")
    return tempfile.TemporaryFile()


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it is closed, or there is none
        sys.stderr.flush()


held_back = _HeldBack()
os.register_at_fork(after_in_child=held_back.release_child)


@contextlib.contextmanager
def quiet_event_writer() -> Iterator[None]:
    """Suppresses the traceback of the event file writer's thread, and TensorFlow's line; `flush` raises its error too."""
    earlier, logger = threading.excepthook, logging.getLogger("tensorflow")

    def hook(failure: threading.ExceptHookArgs) -> None:
        if type(failure.thread).__name__ != "_EventLoggerThread":
            earlier(failure)

    def is_other(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("EventFileWriter writer thread error")

    threading.excepthook = hook
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)
        threading.excepthook = earlier
