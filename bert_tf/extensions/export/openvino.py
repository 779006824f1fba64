"""Exports to OpenVINO with dynamic shapes, checked against TensorFlow; optional packages are imported late.

Bfloat16 affects execution, not the file: OpenVINO's file is float32, which OpenVINO computes in bfloat16 by default if the
CPU supports it; INFERENCE_PRECISION_HINT=f32 prevents that.
"""

from __future__ import annotations

from pathlib import Path

from bert_tf.batch.engine import Compute
from bert_tf.errors import FlagError
from bert_tf.extensions.engines import converted as engines
from bert_tf.extensions.export import gate
from bert_tf.extensions.export.job import FLOAT32, ExportJob, metadata, write_kept_files
from bert_tf.extensions.export.onnx_folder import record_in
from bert_tf.training.settings import INT8

_ONNX, _OPENVINO = "model.onnx", "model.xml"
_ALL_THREADS = 0


def write(exported: ExportJob, folder: Path) -> None:
    """Writes a model deterministically into an empty folder, in float32, or in int8 calibrated on training texts.

    Raises BertError if the weights are damaged, calibration texts are missing, or reduced precision costs more than allowed
    or cannot be measured here.
    """
    from bert_tf.extensions.engines import onnx_model, openvino_model

    precision, path, source = exported.options.precision, folder / _OPENVINO, folder / _ONNX
    if precision == "bfloat16" and not engines.openvino_computes_bfloat16():
        raise FlagError(
            "--precision=bfloat16: OpenVINO computes in float32 on this CPU, so the loss cannot be measured; export on another"
            " CPU (AVX-512), or leave the flag out: the file is the same"
        )
    calibration = openvino_model.Calibration(exported.trained) if precision == INT8 else None
    onnx_model.save(exported.trained, source, metadata(exported))
    gate.require_agreement(exported.trained, engines.open_openvino(source, FLOAT32, _ALL_THREADS))
    if calibration is None:
        openvino_model.save(source, path)
    else:
        openvino_model.quantize(source, path, calibration)
    source.unlink()
    onnx_model.weights_of(source).unlink()
    if precision != FLOAT32:
        gate.measure(exported, engines.open_openvino(path, precision, _ALL_THREADS), folder)
    write_kept_files(exported, folder)


def open_folder(folder: Path) -> Compute:
    return engines.open_openvino(folder / _OPENVINO, record_in(folder).get("precision", FLOAT32), _ALL_THREADS)
