"""ONNX models with int8 weight products; activation ranges are determined per batch."""

from __future__ import annotations

import logging
from pathlib import Path

from google.protobuf.message import DecodeError
from onnxruntime.quantization import QuantType, quantize_dynamic

from bert_tf import atomic


def quantize(source: Path, target: Path) -> None:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it tells the log of each product
    try:
        with atomic.as_os_errors(target, DecodeError):  # of its own copy in $TMPDIR, which was cut off
            quantize_dynamic(source, target, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"])
    finally:
        logging.disable(before)
