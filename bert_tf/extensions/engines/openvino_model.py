"""OpenVINO models from an ONNX file, unchanged or with int8 weight products by NNCF, calibrated on training texts."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path

os.environ["NNCF_CI"] = "1"  # read on import: turns off telemetry

import nncf
import numpy as np
import openvino
import safetensors.numpy

from bert_tf import extension, run_layout
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError
from bert_tf.extensions.engines.encoder import ATTENTION
from bert_tf.features.columns import Array, Features
from bert_tf.fields import INPUTS
from bert_tf.io import atomic

_ROWS = 300  # more do not change the ranges
_OF_TRAINING = "*-train-*.safetensors"
_COLUMNS = ("token_ids", "lengths", "first_lengths")


def save(source: Path, target: Path) -> None:
    """Converts an ONNX file to float32 OpenVINO: `target` (.xml) with weights beside it (.bin)."""
    _save(openvino.Core().read_model(source), target)


def quantize(source: Path, target: Path, calibration: Calibration) -> None:
    """As `save`, with int8 weights, and activations in the ranges of real texts.

    Attention products are left out: in int8 they are not faster, and less exact.
    """
    logging.getLogger("nncf").setLevel(logging.ERROR)
    rows = list(calibration.batches())
    with contextlib.redirect_stdout(io.StringIO()):  # it draws progress bars there, where predictions may go
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


class Calibration:
    """Training rows of a run."""

    def __init__(self, trained: Trained) -> None:
        """Reads the rows; CheckpointError if the run folder has none."""
        self.path = _newest(trained)
        try:
            columns = safetensors.numpy.load_file(self.path)
            token_ids, lengths, first_lengths = (columns[name] for name in _COLUMNS)
        except (OSError, KeyError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{self.path}: damaged features: {error}; delete the file, and train again") from error
        self._features = Features(token_ids, lengths, first_lengths, {}, ())

    def batches(self) -> Iterator[dict[str, Array]]:
        """Yields the inputs of one row at a time, always the same rows."""
        features = self._features
        for row in np.random.default_rng(0).permutation(len(features))[:_ROWS]:
            batch = features.batch(np.array([row]), int(features.lengths[row]))
            yield {field.name: batch[field.name] for field in INPUTS}


def _newest(trained: Trained) -> Path:
    run = run_layout.run_of(trained.folder)
    prefixes = tuple(series.prefix for entry in extension.installed().values() for series in entry.series if series.prefix)
    folders = [run, run.parent] if run.name.startswith(prefixes) else [run]  # runs of a series may share features above
    cached = (path for folder in folders for path in (folder / run_layout.FEATURES).glob(_OF_TRAINING))
    files_by_age = sorted(cached, key=lambda path: path.stat().st_mtime_ns)
    if not files_by_age:
        raise CheckpointError(
            f"{trained.prefix}: int8 takes its ranges from the texts of the training, and {run} has no"
            f" {run_layout.FEATURES}/{_OF_TRAINING}; take the folder of the run, --precision=bfloat16, or ONNX Runtime, whose"
            " int8 needs no texts"
        )
    return files_by_age[-1]
