"""Names of files on any file system."""

from __future__ import annotations

import os
import re

from bert_tf.io.files import has_scheme

_MAGIC = re.compile(r"[*?[]")


def absolute(path: str) -> str:
    """Returns a path that means the same to workers; a trailing slash is kept."""
    return path if has_scheme(path) else os.path.abspath(path) + "/" * path.endswith("/")


def is_pattern(path: str) -> bool:
    return bool(_MAGIC.search(path))


def joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def divided(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name
