"""Standard streams that lose only their own output if they are closed, full or broken.

A file descriptor that is closed at process start is reused by the next open file: TensorFlow's log would end up in
a checkpoint. A training that only loses its log continues; a command whose results cannot be read reports it.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import select
import sys
from typing import Any

from bert_tf.errors import OutputError
from bert_tf.io.files import reason

_SPELLED = "bert_tf.spelled"  # name of the error handler


class _Results(io.FileIO):
    """Standard output; reports once why it cannot be written."""

    _failed = False

    def write(self, data: Any) -> int:
        if self._failed:
            return len(data)
        try:
            while (written := super().write(data)) is None:  # full and non-blocking
                select.select([], [self], [])
            return written
        except BrokenPipeError:
            self._failed = True
            raise
        except OSError as error:
            self._failed = True
            raise OutputError(f"standard output: cannot write: {reason(error)}") from error


class _Notices(io.FileIO):
    """Standard error; drops what cannot be written."""

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or len(data)  # None if full and non-blocking
        return len(data)


def make_safe() -> None:
    """Replaces closed streams and Python's own; call once, before anything is opened or written."""
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):  # the first two fail on use, as closed ones
        _keep(number, mode)
    codecs.register_error(_SPELLED, _spelled)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  (it stays open)
    sys.stdout = sys.__stdout__ = _text(_Results(1, "w", closefd=False), sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(_Notices(2, "w", closefd=False), sys.stderr, lines=True)  # type: ignore[misc]


def _keep(number: int, mode: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, mode)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _text(raw: io.FileIO, earlier: io.TextIOWrapper | Any, *, lines: bool = False) -> io.TextIOWrapper:
    encoding = getattr(earlier, "encoding", None) or "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _SPELLED, line_buffering=lines or raw.isatty())


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """Writes file-name bytes unchanged, and characters that the encoding lacks as backslash and number."""
    with contextlib.suppress(UnicodeError):
        return codecs.lookup_error("surrogateescape")(error)
    return codecs.lookup_error("backslashreplace")(error)
