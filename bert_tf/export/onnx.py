"""Exports an ONNX model with dynamic shapes, in float32 or with int8 weights."""

from __future__ import annotations

from pathlib import Path

import onnx

from bert_tf.conversion import onnx_model
from bert_tf.engines import onnxruntime
from bert_tf.export import agreement, gate, kept_files
from bert_tf.export.exported import FLOAT32, Exported

MODEL = "model.onnx"
_THREADS = 0  # as many as there are


def write(exported: Exported, folder: Path) -> None:
    """Writes a model deterministically into an empty folder.

    Raises BertError if the weights are damaged or reduced precision costs more than allowed.
    """
    precision, path = exported.options.precision, folder / MODEL
    onnx.save(onnx_model.build(exported.trained, **kept_files.metadata(exported)), str(path))
    agreement.require(exported.trained, onnxruntime.open_file(path, FLOAT32, _THREADS))
    if precision != FLOAT32:
        whole = path.rename(folder / f"{FLOAT32}.onnx")
        onnx_model.quantize(whole, path)
        whole.unlink()
        gate.measure(exported, onnxruntime.open_file(path, precision, _THREADS), folder)
    kept_files.write(exported, folder)
