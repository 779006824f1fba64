"""Computes with many checkpoints in turn, in graphs built once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import values
from bert_tf.config import BertConfig
from bert_tf.estimator.failures import refuse_what_is_no_number
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.features.columns import Features
from bert_tf.inputs.batching import Batching
from bert_tf.modeling.execution import Execution
from bert_tf.runtime import forks
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs


@dataclasses.dataclass(frozen=True)
class InferenceOptions:
    machine: Machine
    execution: Execution  # of the encoder
    batching: Callable[[BertConfig, int], Batching]  # padding and batch size by model and longest input
    precision: str  # number format, see PRECISIONS
    batch_size: int | None  # rows per device; None chooses by length
    make: Callable[[InferenceOptions], Engine] | None = None  # makes another engine than TensorFlowEngine

    def engine(self) -> Engine:
        """Engine without weights, to be closed by the caller; ForkedError if this process cannot compute."""
        forks.begin()
        return TensorFlowEngine(self) if self.make is None else self.make(self)


class Engine(Protocol):
    """Computes with the weights of one checkpoint at a time."""

    def load(self, trained: Trained) -> int:
        """Loads a checkpoint's weights and returns its step."""

    def outputs(self, features: Features) -> Outputs:
        """Outputs of the head in the order of the rows."""

    def close(self) -> None:
        """Frees memory."""


class TensorFlowEngine:
    """TensorFlow engine: holds the graph of one architecture and the weights of one checkpoint; must be closed."""

    def __init__(self, inference: InferenceOptions) -> None:
        self._inference = inference
        self._forward: Forward | None = None
        self._architecture: tuple[object, ...] = ()
        self._trained: Trained | None = None
        self._step = 0

    def load(self, trained: Trained) -> int:
        """Loads weights and returns their step; CheckpointError if damaged, not finite, or of another model."""
        if self._trained is trained:
            return self._step
        self._trained = None
        forward = self._forward_of(trained)
        self._step = forward.load(trained.prefix)
        values.refuse(values.problem_of_values(trained.prefix, forward.not_finite()))
        self._trained = trained
        return self._step

    def outputs(self, features: Features) -> Outputs:
        """Head outputs in the order of the rows, see `Forward.outputs`; CheckpointError if not finite.

        Raises TrainingError if out of memory, ValueError if no weights are loaded.
        """
        trained, inference = self._trained, self._inference
        if self._forward is None or trained is None:
            raise ValueError("no weights are loaded")
        batching = inference.batching(trained.config, trained.max_seq_length)
        outputs = self._forward.outputs(features, batch_size=inference.batch_size, batching=batching)
        refuse_what_is_no_number(outputs, trained.prefix)
        return outputs

    def _forward_of(self, trained: Trained) -> Forward:
        if self._forward is None or self._architecture != trained.architecture:
            self.close()
            model = Model(trained.config, trained.head, execution=self._inference.execution)
            self._forward, self._architecture = Forward(model, self._inference.machine), trained.architecture
        return self._forward

    def close(self) -> None:
        if self._forward is not None:
            self._forward.close()
        self._forward, self._architecture, self._trained = None, (), None
