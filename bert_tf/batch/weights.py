"""The weights of a trained model as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import model_reader, refuse_unusable
from bert_tf.modeling.heads import registry


def weights(trained: Trained) -> Mapping[str, npt.NDArray[np.float32]]:
    """Encoder and head weights by published name, without moments; logits of a calibrated head are divided by its temperatures.

    Raises CheckpointError if they are damaged, not finite, or of another model.
    """
    reader = model_reader(trained.prefix)
    shapes = {**encoder_shapes(trained.config), **registry.make_head(trained.head).variables(trained.config)}
    refuse_unusable(reader, shapes)
    arrays = {name: np.asarray(reader[name]).astype(np.float32) for name in shapes}
    return calibrated(arrays, dict(trained.head.options).get("temperatures", ()))


def calibrated(arrays: Mapping[str, npt.NDArray[Any]], temperatures: Sequence[float]) -> Mapping[str, npt.NDArray[Any]]:
    """The same weights with a head whose logits are divided by the temperatures, if there are any."""
    divisors = np.array(temperatures, np.float32)
    head = ("output_weights", "output_bias") if temperatures else ()
    return {**arrays, **{name: (arrays[name].T / divisors).T for name in head}}
