"""Temporary folders. A killed process leaves its own behind: a later one of the same user deletes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

_PREFIX = "bert_tf-scratch-"
_DAY_S = 24 * 3600.0


def folder() -> tempfile.TemporaryDirectory[str]:
    """Makes a folder, deleted with the returned object; deletes those that are a day old and that no process holds."""
    for other in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # of another user, held, or another process deletes it
            if other.lstat().st_mtime < time.time() - _DAY_S:
                os.close(_held(str(other)))
                shutil.rmtree(other)
    made = tempfile.TemporaryDirectory(prefix=_PREFIX)
    with contextlib.suppress(OSError):  # without locks on its file system no process deletes it
        weakref.finalize(made, os.close, _held(made.name))
    return made


def _held(path: str) -> int:
    """Opens and locks a folder, also against processes of other containers; OSError if another process holds it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
