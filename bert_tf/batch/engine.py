"""What computes with trained models, and how; the engine is in `batch.tensorflow_engine`, others are of extensions.

Shapes: B rows of a batch, T tokens of the longest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bert_tf.batch.trained import Trained
from bert_tf.config import BertConfig
from bert_tf.features.batching import Batching, eval_batches
from bert_tf.features.columns import Array, Features
from bert_tf.fields import TOKEN, Field
from bert_tf.runtime import forks
from bert_tf.tasks.base import Outputs

if TYPE_CHECKING:  # they import TensorFlow
    from bert_tf.modeling.execution import Execution
    from bert_tf.runtime.machine import Machine

Batch = Mapping[str, Array]  # the arrays of `fields.INPUTS`, [B, T] each
Compute = Callable[[Batch], Mapping[str, npt.NDArray[np.float32]]]  # outputs by name, with padding


class Engine(Protocol):
    """Computes with the weights of one checkpoint at a time."""

    def load(self, trained: Trained) -> int:
        """Loads a checkpoint's weights, unless those of the same with another head are loaded; returns its step.

        After an error nothing is loaded, or what was before.
        """

    def outputs(self, features: Features) -> Outputs:
        """Outputs of the head in the order of the rows."""

    def close(self) -> None:
        """Frees memory."""


class SeveralModels(Protocol):
    """Computes several models, which read texts alike, at once."""

    @staticmethod
    def trunk(trained: Trained) -> str:
        """A name of the weights up to the first layer; models of other names compute nothing in common."""

    def outputs(self, features: Mapping[int, Features]) -> Mapping[int, Outputs]:
        """Outputs of the heads by number of the model, each for rows of its own; raises CheckpointError if not finite."""

    def close(self) -> None:
        """Frees memory."""


class Chosen(NamedTuple):
    """What computes checkpoints, and why; `make` is None for TensorFlow."""

    name: str
    make: Callable[[InferenceOptions], Engine] | None = None
    why: str = ""  # empty if the user chose it


class EngineKind(Protocol):
    """What an extension knows by a value of --engine."""

    def require(self, precision: str) -> None:
        """Raises FlagError if it cannot compute in the precision here; called before the machine is set up."""

    def choose(self, precision: str, home: Path, *, on_gpu: bool) -> Chosen:
        """`home` is the package's; `on_gpu` tells whether TensorFlow would compute on one."""


@dataclasses.dataclass(frozen=True)
class InferenceOptions:
    make: Callable[[InferenceOptions], Engine]
    batching: Callable[[BertConfig, int], Batching]  # padding and batch size by model and longest input
    precision: str  # number format, see PRECISIONS
    threads: int  # of one operation on the CPU
    batch_size: int | None  # rows per device; None chooses by length
    machine: Machine | None = None  # of TensorFlow; None if it does not compute
    execution: Execution | None = None  # of the encoder in TensorFlow

    def engine(self) -> Engine:
        """Engine without weights, to be closed by the caller; ForkedError if this process cannot compute."""
        forks.begin()
        return self.make(self)


def computed(
    fields: Sequence[Field], features: Features, compute: Compute, *, batch_size: int | None, batching: Batching
) -> Outputs:
    """Outputs of heads in row order, without padding."""
    results = {field.name: features.empty(field) for field in fields}
    for rows in eval_batches(features, batch_size, batching):
        batch = features.batch(rows, batching.tokens(int(features.lengths[rows].max())))
        outputs = compute(batch)
        for field in fields:
            output = outputs[field.name]  # [B, ...] of rows, [B, T, ...] of tokens
            real = output[batch["input_mask"].astype(bool)] if field.axis == TOKEN else output
            results[field.name][features.places(field.axis, rows)] = real
    return results
