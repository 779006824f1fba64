"""OpenVINO models from an ONNX file, unchanged or with int8 weight products by NNCF."""

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
    """Converts an ONNX file to float32 OpenVINO: `target` (.xml) with weights beside it (.bin)."""
    _save(openvino.Core().read_model(source), target)


def quantize(source: Path, target: Path, calibration: Calibration) -> None:
    """As `save`, with int8 weights, and activations in the ranges of real texts.

    Attention products are left out: in int8 they are not faster, and less exact.
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
