"""Turns TensorFlow's write errors into one line for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from bert_tf.errors import OutputError


@contextlib.contextmanager
def readable_errors(folder: Path) -> Iterator[None]:
    """Converts TensorFlow errors within the block, such as a full disk, to an `OutputError` about the folder."""
    try:
        yield
    except tf.errors.OpError as error:
        why = error.message.rpartition("; ")[2].splitlines()[0]  # temporary names are before it, and operations behind
        raise OutputError(f"{folder}: was not written: {why}; nothing was changed") from error
