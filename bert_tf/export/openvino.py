"""Exports an OpenVINO model with dynamic shapes, in float32, or in int8 calibrated on training texts.

Bfloat16 affects execution, not the file: the file is float32, which OpenVINO computes in bfloat16 by default if the
CPU supports it; INFERENCE_PRECISION_HINT=f32 prevents that.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from bert_tf.conversion import onnx_model, openvino_model
from bert_tf.engines import openvino
from bert_tf.engines.names import INT8
from bert_tf.export import agreement, gate, kept_files
from bert_tf.export.exported import FLOAT32, Exported

MODEL = "model.xml"
_THREADS = 0  # as many as there are


def write(exported: Exported, folder: Path) -> None:
    """Writes a model deterministically into an empty folder.

    Raises BertError if the weights are damaged, calibration texts are missing, or reduced precision costs more than
    allowed.
    """
    precision, path, source = exported.options.precision, folder / MODEL, folder / "model.onnx"
    calibration = openvino_model.Calibration(exported.trained) if precision == INT8 else None
    onnx.save(onnx_model.build(exported.trained, **kept_files.metadata(exported)), str(source))
    agreement.require(exported.trained, openvino.open_file(source, FLOAT32, _THREADS))
    if calibration is None:
        openvino_model.save(source, path)
    else:
        openvino_model.quantize(source, path, calibration)
    source.unlink()
    if precision != FLOAT32:
        gate.measure(exported, openvino.open_file(path, precision, _THREADS), folder)
    kept_files.write(exported, folder)
