"""Exports by format, opened to be compared with the package: a row for each format that can be computed with here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf.features.columns import Array

Batch = Mapping[str, Array]  # [B, T] of each of `fields.INPUTS`, and what the head reads besides
Outputs = Mapping[str, Array]  # of the head by name, with padding
Compute = Callable[[Batch], Outputs]


def _saved_model(folder: Path) -> Compute:
    from bert_tf.export.saved_model import reader

    return reader.open_folder(folder)


OPENERS: Mapping[str, Callable[[Path], Compute]] = {"saved_model": _saved_model}
