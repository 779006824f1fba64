"""Engines with a converted model: same batches, features and outputs as TensorFlow's.

Shapes: B rows of a batch, T tokens of the longest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.batch.tensorflow_engine import InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.engines.names import INT8
from bert_tf.estimator.failures import refuse_what_is_no_number
from bert_tf.features.columns import Array, Features
from bert_tf.fields import INPUTS, TOKEN, Field
from bert_tf.inputs.batching import Batching, eval_batches
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.base import Outputs

Batch = Mapping[str, Array]  # the arrays of `INPUTS`, [B, T] each
Compute = Callable[[Batch], Mapping[str, npt.NDArray[np.float32]]]  # outputs by name, with padding
Open = Callable[[Path, str, int], Compute]  # from a file, a precision and a number of threads
Convert = Callable[[Trained, str], Path]  # from a model and a precision to its file

_TOKENS = 768  # of a batch: a layer's tensors stay in a core's L2 cache
# A request of few rows is padded to a multiple of 8 tokens, since an engine prepares again for each new length. int8 rows
# always are, in batches of one length: a sum rounded differently can become another integer.
_FEW, _MULTIPLE = 8, 8


class ConvertedEngine:
    """Runs one converted model; see `batch.tensorflow_engine.Engine`."""

    def __init__(self, inference: InferenceOptions, precision: str, convert: Convert, open_file: Open) -> None:
        """Converts nothing yet; `convert` makes a model's file, `open_file` makes its computation."""
        self._inference, self._precision = inference, precision
        self._convert, self._open = convert, open_file
        self._loaded: _Loaded | None = None

    def load(self, trained: Trained) -> int:
        """Raises CheckpointError if damaged, not finite, or of another model."""
        if self._loaded is None or self._loaded.trained is not trained:
            self._loaded = None
            threads = self._inference.machine.session_config.intra_op_parallelism_threads
            compute = self._open(self._convert(trained, self._precision), self._precision, threads)
            self._loaded = _Loaded(trained, compute, step_of(trained.prefix))
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
    fields = [field.sized(trained.config.hidden_size) for field in heads.of(trained.head).outputs]
    results = {field.name: features.empty(field) for field in fields}
    for rows in eval_batches(features, batch_size, batching):
        batch = features.batch(rows, batching.tokens(int(features.lengths[rows].max())))
        outputs = compute(batch)
        for field in fields:
            results[field.name][features.places(field.axis, rows)] = _without_padding(field, outputs[field.name], batch)
    return results


def step_of(prefix: str) -> int:
    """0 if the checkpoint has none."""
    reader = CheckpointReader(prefix)
    return int(reader["global_step"]) if "global_step" in reader.shapes else 0


def _without_padding(field: Field, output: npt.NDArray[np.float32], batch: Mapping[str, Array]) -> npt.NDArray[Any]:
    """Returns [B, ...] for rows, [real tokens, ...] for tokens."""
    real: npt.NDArray[Any] = output[batch["input_mask"].astype(bool)] if field.axis == TOKEN else output
    return real
