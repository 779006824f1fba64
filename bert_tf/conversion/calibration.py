"""Calibration of int8 ranges on training texts, as kept in the run folder.

Shapes: N rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import safetensors.numpy

from bert_tf import run_layout
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError
from bert_tf.features.columns import Array, Features
from bert_tf.fields import INPUTS

_ROWS = 300  # of which ranges no longer change
_OF_TRAINING = "*-train-*.safetensors"
_COLUMNS = ("token_ids", "lengths", "first_lengths")


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
    found = sorted((trained.folder / run_layout.FEATURES).glob(_OF_TRAINING), key=lambda path: path.stat().st_mtime_ns)
    if not found:
        raise CheckpointError(
            f"{trained.prefix}: int8 takes its ranges from the texts of the training, and {trained.folder} has no"
            f" {run_layout.FEATURES}/{_OF_TRAINING}; take the folder of the run, or --precision=bfloat16"
        )
    return found[-1]
