"""Folders of converted files: their checksums, and the model of the hub that they were."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bert_tf import home
from bert_tf.errors import OutputError
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import log

ORIGIN = "hub.json"  # beside a converted checkpoint: which model of the hub it was
NEW_VARIABLES = "new_variables.txt"  # beside a converted checkpoint: those that its weights lacked, one a line
_SUMS = "converted.sha256"  # as `sha256sum --check` reads it


def origin_of(checkpoint: str | os.PathLike[str]) -> dict[str, Any]:
    """Name, revision and digests of the hub's model that a checkpoint was converted from; empty for others, or if damaged."""
    try:
        origin = documents.read_json(Path(checkpoint).parent / ORIGIN) if checkpoint else {}
    except (OSError, ValueError):  # a note: nothing is computed with it
        return {}
    return origin if isinstance(origin, dict) else {}


def has_new_pooler(checkpoint: str | os.PathLike[str]) -> bool:
    """Whether a checkpoint was converted from weights without a pooler."""
    return (Path(checkpoint).parent / NEW_VARIABLES).is_file()


def unchanged(target: Path, make: Callable[[Path], None]) -> Path:
    """Returns a folder of converted files; one process at a time makes it if it is missing or its checksums differ."""
    if _change(target) is None:
        return target
    try:
        folder = atomic.make_folder(target.parent)
    except OutputError as error:
        raise OutputError(f"{error}; {home.VARIABLE}=FOLDER keeps models elsewhere") from error
    with lock.taking_turns(folder):
        change = _change(target)
        if change is not None:
            if target.exists():
                log.warning("%s: %s: it is made again", target, change)
            atomic.delete_unfinished(target)
            atomic.delete_old(folder)
            make(target)
    return target


def write_sums(folder: Path) -> None:
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _SUMS)
    (folder / _SUMS).write_text("".join(f"{files.digest(path)}  {path.name}\n" for path in paths), encoding="utf-8")


def _change(folder: Path) -> str | None:
    """Returns what has changed in a folder; a time stamp would miss a copy's changes, so all bytes are read."""
    try:
        lines = (folder / _SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return f"has no readable {_SUMS}"
    if not lines:
        return f"{_SUMS} is empty"
    for digest, name in (line.split("  ", 1) if "  " in line else (line, "") for line in lines):
        try:
            if files.digest(folder / name) != digest:
                return f"{name} has changed"
        except OSError as error:
            return f"{name}: {error.strerror}"
    return None
