"""What computes with trained models, and how; the engines are in `batch.tensorflow_engine` and `engines`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bert_tf.batch.trained import Trained
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.features.columns import Features
from bert_tf.inputs.batching import Batching
from bert_tf.runtime import forks
from bert_tf.tasks.base import Outputs

if TYPE_CHECKING:  # they import TensorFlow
    from bert_tf.modeling.execution import Execution
    from bert_tf.runtime.machine import Machine


class Engine(Protocol):
    """Computes with the weights of one checkpoint at a time."""

    def load(self, trained: Trained) -> int:
        """Loads a checkpoint's weights and returns its step."""

    def outputs(self, features: Features) -> Outputs:
        """Outputs of the head in the order of the rows."""

    def close(self) -> None:
        """Frees memory."""


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


def refuse_what_is_no_number(outputs: Outputs, checkpoint: str) -> None:
    """Raises CheckpointError if an output computed with the checkpoint is NaN or infinite."""
    if not all(np.isfinite(output).all() for output in outputs.values()):
        raise CheckpointError(f"{checkpoint}: its outputs are NaN or infinite; did its training fail?")
