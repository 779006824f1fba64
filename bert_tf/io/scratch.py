"""Temporary folders. A killed process leaves its own behind: a later one of the same user and machine deletes it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path

from bert_tf.io import lock

_DAY_S = 24 * 3600.0


def _namespace() -> str:
    """Number of what the numbers of processes belong to: containers may share the parent folder and the name of the host."""
    with contextlib.suppress(OSError):
        return "".join(filter(str.isdecimal, os.readlink("/proc/self/ns/pid")))
    return ""


def folder() -> tempfile.TemporaryDirectory[str]:
    """Makes a folder, deleted with the returned object; deletes those that are a day old and whose process has ended."""
    begin = f"bert_tf-{socket.gethostname()}-{_namespace()}-"
    for other in Path(tempfile.gettempdir()).glob(f"{begin}*"):
        number = re.match(r"(\d{1,9})-", other.name[len(begin) :])
        with contextlib.suppress(OSError):  # of another user, or another process deletes it
            if number and not lock.is_alive(int(number[1])) and other.lstat().st_mtime < time.time() - _DAY_S:
                shutil.rmtree(other)
    return tempfile.TemporaryDirectory(prefix=f"{begin}{os.getpid()}-")
