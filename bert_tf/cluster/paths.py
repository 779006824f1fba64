"""Names of files that may lie anywhere."""

from __future__ import annotations

import os
import re

_SCHEME = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://")
_MAGIC = re.compile(r"[*?[]")


def has_scheme(path: str) -> bool:
    """Whether a path is of a file system by name, as gs://bucket/file, and never one of this machine's."""
    return bool(_SCHEME.match(path))


def absolute(path: str) -> str:
    """Returns a path that workers understand as the command does; a slash at its end stays."""
    return path if has_scheme(path) else os.path.abspath(path) + "/" * path.endswith("/")


def is_pattern(path: str) -> bool:
    """Whether a path stands for several files."""
    return bool(_MAGIC.search(path))


def joined(folder: str, name: str) -> str:
    """Returns the path of a file in a folder.

    Args:
      folder: with a scheme or without.
      name: of the file.
    """
    return f"{folder.rstrip('/')}/{name}"


def divided(path: str) -> tuple[str, str]:
    """Returns folder and name."""
    folder, _, name = path.rpartition("/")
    return folder, name
