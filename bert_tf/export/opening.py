"""Opens exports for comparison with the package: a row for each format that can be executed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf.features.columns import Array

Batch = Mapping[str, Array]  # [B, T] of each of `fields.INPUTS`, and what the head reads besides
Outputs = Mapping[str, Array]  # of the head by name, with padding
Compute = Callable[[Batch], Outputs]

_ALL_THREADS = 0


def _saved_model(folder: Path) -> Compute:
    from bert_tf.export.saved_model import reader

    return reader.open_folder(folder)


def _onnx(folder: Path) -> Compute:
    from bert_tf.engines import onnxruntime
    from bert_tf.export.onnx import MODEL

    return onnxruntime.open_file(folder / MODEL, "float32", _ALL_THREADS)


def _openvino(folder: Path) -> Compute:
    from bert_tf.engines import openvino
    from bert_tf.export.openvino import MODEL

    return openvino.open_file(folder / MODEL, "float32", _ALL_THREADS)


OPENERS: Mapping[str, Callable[[Path], Compute]] = {"saved_model": _saved_model, "onnx": _onnx, "openvino": _openvino}
