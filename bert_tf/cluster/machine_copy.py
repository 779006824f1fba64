"""Folders of this machine that all its processes share: made by the first that needs one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bert_tf import atomic, lock
from bert_tf.errors import OutputError


def made_once(name: str, fill: Callable[[Path], None]) -> Path:
    """Returns a folder; another process, or an earlier one, may have made it.

    Args:
      name: says what is in it.
      fill: puts that into an empty folder.

    Raises:
      OutputError: the disk is full, or somebody else has made the folder that all are in.
    """
    home = Path(tempfile.gettempdir(), f"bert_tf-{os.getuid()}")
    with atomic.readable_errors(home):
        home.mkdir(mode=0o700, exist_ok=True)
        if home.stat().st_uid != os.getuid():
            raise OutputError(f"{home}: belongs to another user; set TMPDIR to a folder of yours")
    folder = home / name
    with lock.claiming(folder, wait=True):
        if not folder.is_dir():
            with atomic.replacing(folder) as temporary:
                temporary.mkdir()
                fill(temporary)
    return folder
