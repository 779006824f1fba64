"""Computes exported models with ONNX Runtime, without TensorFlow.

Shapes: B rows of a batch, T tokens of the longest, D hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.batch.exported_model import ExportedModel
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import exported
from bert_tf.checkpoints.exported import layer_output
from bert_tf.engines import onnxruntime_session
from bert_tf.engines.base import Batch, Compute
from bert_tf.errors import CheckpointError
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CLS, MAX, MEAN, VECTORS

Floats = npt.NDArray[np.float32]

_MASK = INPUTS[1].name


def opened(model: Trained, threads: int) -> Compute:
    """Opens the graph of the model's head; raises CheckpointError for a model that is not exported."""
    if not isinstance(model, ExportedModel):
        raise CheckpointError(f"{model.prefix}: not an exported model; evaluate checkpoints and exported models apart")
    wanted = model.vectors
    with exported.weights_checked(model.folder, model.facts):
        if wanted is None:
            return onnxruntime_session.opened(model.folder / exported.GRAPH, threads)
        names = [layer_output(number) for number in wanted.layers]
        compute = onnxruntime_session.opened(model.folder / exported.ENCODER, threads, names)

    def vectors(batch: Batch) -> Mapping[str, Floats]:
        layers = compute(batch)
        tokens = [layers[name] for name in names]
        if wanted.pooling is not None:
            tokens = [_POOLINGS[wanted.pooling](one, batch[_MASK]) for one in tokens]
        return {VECTORS: np.concatenate(tokens, axis=-1)}

    return vectors


def _mean(tokens: Floats, mask: npt.NDArray[Any]) -> Floats:
    real = mask[:, :, None].astype(np.float32)  # [B, T, 1]
    return np.asarray((tokens * real).sum(axis=1) / real.sum(axis=1), np.float32)


# From tokens [B, T, D] and a mask [B, T] to [B, D], ignoring padding.
_POOLINGS: Mapping[str, Callable[[Floats, npt.NDArray[Any]], Floats]] = {
    MEAN: _mean,
    CLS: lambda tokens, _: tokens[:, 0],
    MAX: lambda tokens, mask: np.where(mask[:, :, None] > 0, tokens, -np.inf).max(axis=1),
}
