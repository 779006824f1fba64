"""Models of OpenVINO: of an ONNX file as it is, or with products of weights in int8 by NNCF."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from pathlib import Path

os.environ["NNCF_CI"] = "1"  # read when it is imported: else it tells its makers over the network that it is used

import nncf
import openvino

from bert_tf import atomic
from bert_tf.conversion.calibration import Calibration
from bert_tf.conversion.encoder import ATTENTION


def save(source: Path, target: Path) -> None:
    """Writes a model of ONNX as `target` (.xml) and weights beside it (.bin), in float32.

    Args:
      source: file of ONNX.
      target: name of the .xml file.
    """
    _save(openvino.Core().read_model(source), target)


def quantize(source: Path, target: Path, calibration: Calibration) -> None:
    """As `save`, with weights in int8, and what they are multiplied with in the ranges that real texts have.

    Products of attention stay as they are: in int8 they are not faster, and less exact.

    Args:
      source: file of ONNX.
      target: name of the .xml file.
      calibration: real texts.
    """
    logging.getLogger("nncf").setLevel(logging.ERROR)
    rows = list(calibration.batches())
    with contextlib.redirect_stdout(io.StringIO()):  # it draws bars there, where predictions may go
        model = nncf.quantize(
            openvino.Core().read_model(source),
            nncf.Dataset(rows),
            subset_size=len(rows),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=nncf.IgnoredScope(patterns=[f".*{ATTENTION}.*"]),
        )
    _save(model, target)


def _save(model: openvino.Model, target: Path) -> None:
    with atomic.as_os_errors(target, RuntimeError):
        openvino.save_model(model, target, compress_to_fp16=False)
