"""ONNX models in ONNX Runtime, on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime

from bert_tf.engines.base import Batch, Compute

_ERRORS = 3  # severity from which it writes to the standard error


def open_file(path: Path, precision: str, threads: int) -> Compute:
    """Opens a model; `threads` of one operation."""
    del precision
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = _ERRORS
    session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    reads, names = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))

    def compute(batch: Batch) -> dict[str, object]:
        return dict(zip(names, session.run(names, {name: batch[name] for name in reads})))

    return compute  # type: ignore[return-value]
