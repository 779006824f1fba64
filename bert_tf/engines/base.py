"""Engines with a converted model: same batches, features and outputs as TensorFlow's.

Shapes: B rows of a batch, T tokens of the longest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.batch.engine import InferenceOptions, refuse_what_is_no_number
from bert_tf.batch.trained import Trained
from bert_tf.engines.names import INT8
from bert_tf.features.columns import Array, Features
from bert_tf.fields import INPUTS, TOKEN, Field
from bert_tf.inputs.batching import Batching, eval_batches
from bert_tf.tasks.base import Outputs

Batch = Mapping[str, Array]  # the arrays of `INPUTS`, [B, T] each
Compute = Callable[[Batch], Mapping[str, npt.NDArray[np.float32]]]  # outputs by name, with padding
Open = Callable[[Trained, int], Compute]  # from a model and a number of threads

_TOKENS = 768  # of a batch: a layer's tensors stay in a core's L2 cache
# A request of few rows is padded to a multiple of 8 tokens, since an engine prepares again for each new length. int8 rows
# always are, in batches of one length: a sum rounded differently can become another integer.
_FEW, _MULTIPLE = 8, 8


class ConvertedEngine:
    """Runs one converted model; see `batch.engine.Engine`."""

    def __init__(self, inference: InferenceOptions, precision: str, open_model: Open) -> None:
        """Opens nothing yet."""
        self._inference, self._precision, self._open = inference, precision, open_model
        self._loaded: _Loaded | None = None

    def load(self, trained: Trained) -> int:
        """Raises CheckpointError if damaged, not finite, or of another model."""
        if self._loaded is None or self._loaded.trained is not trained:
            self._loaded = None
            compute = self._open(trained, self._inference.threads)
            self._loaded = _Loaded(trained, compute, trained.step)
        return self._loaded.step

    def outputs(self, features: Features) -> Outputs:
        """See `Forward.outputs`; ValueError if nothing is loaded."""
        if self._loaded is None:
            raise ValueError("no weights are loaded")
        trained, inference = self._loaded.trained, self._inference
        batching = self._batching(trained, few=len(features) <= _FEW)
        compute = self._loaded.compute
        results = computed(
            trained,
            features,
            lambda batch: compute({field.name: batch[field.name] for field in INPUTS}),
            batch_size=inference.batch_size,
            batching=batching,
        )
        refuse_what_is_no_number(results, trained.prefix)
        return results

    def close(self) -> None:
        self._loaded = None

    def _batching(self, trained: Trained, *, few: bool) -> Batching:
        found, apart = self._inference.batching(trained.config, trained.max_seq_length), self._precision == INT8
        multiple = max(found.multiple, _MULTIPLE if few or apart else 1)
        return dataclasses.replace(found, eval_tokens=found.eval_tokens or _TOKENS, multiple=multiple, apart=apart)


@dataclasses.dataclass(frozen=True)
class _Loaded:
    trained: Trained
    compute: Compute
    step: int


def computed(trained: Trained, features: Features, compute: Compute, *, batch_size: int | None, batching: Batching) -> Outputs:
    """Outputs of the head in row order, without padding."""
    fields = trained.outputs
    results = {field.name: features.empty(field) for field in fields}
    for rows in eval_batches(features, batch_size, batching):
        batch = features.batch(rows, batching.tokens(int(features.lengths[rows].max())))
        outputs = compute(batch)
        for field in fields:
            results[field.name][features.places(field.axis, rows)] = _without_padding(field, outputs[field.name], batch)
    return results


def _without_padding(field: Field, output: npt.NDArray[np.float32], batch: Mapping[str, Array]) -> npt.NDArray[Any]:
    """Returns [B, ...] for rows, [real tokens, ...] for tokens."""
    real: npt.NDArray[Any] = output[batch["input_mask"].astype(bool)] if field.axis == TOKEN else output
    return real
