"""Folders shared by all processes of this machine, made by the first that needs one."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bert_tf import atomic, lock
from bert_tf.errors import OutputError

_KEPT_S = 86400.0  # a copy that nobody has asked for in this time is deleted when another is made


def made_once(name: str, fill: Callable[[Path], None]) -> Path:
    """Returns a folder that `fill` fills once per machine; OutputError if others can write to its parent."""
    home = Path(tempfile.gettempdir(), f"bert_tf-{os.getuid()}")
    with atomic.readable_errors(home):
        with contextlib.suppress(FileExistsError):
            home.mkdir(mode=0o700)
        found = home.lstat()
        if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
            raise OutputError(f"{home}: not a folder that only this user can write; delete it, or set TMPDIR to another folder")
    folder = home / name
    with lock.claiming(folder, wait=True):
        if not folder.is_dir():
            _delete_old(home)
            with atomic.replacing(folder) as temporary:
                temporary.mkdir()
                fill(temporary)
        os.utime(folder)
    return folder


def _delete_old(home: Path) -> None:
    for other in home.glob("[!.]*"):
        with contextlib.suppress(OSError), lock.claiming(other) as who:
            if who is None and other.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(other)
