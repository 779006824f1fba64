"""Weights of many checkpoints, one after the other, in graphs that are built once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import values
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.estimator.failures import refuse_what_is_no_number
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.features.columns import Features
from bert_tf.inputs.pipeline import Batching
from bert_tf.modeling.execution import Execution
from bert_tf.runtime import forks
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs


@dataclasses.dataclass(frozen=True)
class InferenceOptions:
    """How to compute.

    Attributes:
      machine: where.
      execution: of the encoder.
      batching: of a model and the longest input allowed: how to pad, and how much at a time.
      precision: name of the number format.
      batch_size: rows at a time on each device; None for as many as suit their lengths.
      make: makes another engine than `Computer`.
    """

    machine: Machine
    execution: Execution
    batching: Callable[[BertConfig, int], Batching]
    precision: str
    batch_size: int | None
    make: Callable[[InferenceOptions], Engine] | None = None

    def engine(self) -> Engine:
        """Returns what computes so; nothing is loaded yet, and it is to be closed.

        Raises:
          ForkedError: this process cannot compute.
        """
        forks.begin()
        return Computer(self) if self.make is None else self.make(self)


class Engine(Protocol):
    """Computes with the weights of one checkpoint at a time."""

    def load(self, trained: Trained) -> int:
        """See `Computer.load`."""

    def outputs(self, features: Features) -> Outputs:
        """See `Computer.outputs`."""

    def close(self) -> None:
        """Frees memory."""


class Computer:
    """TensorFlow as an engine: holds the graph of one architecture, and the weights of one checkpoint; to be closed."""

    def __init__(self, inference: InferenceOptions) -> None:
        """Builds nothing yet."""
        self._inference = inference
        self._forward: Forward | None = None
        self._architecture: tuple[object, ...] = ()
        self._trained: Trained | None = None
        self._step = 0

    def load(self, trained: Trained) -> int:
        """Computes with the weights of a checkpoint from now on; returns its step.

        Raises:
          CheckpointError: it is damaged, not finite, or of another model.
        """
        if self._trained is trained:
            return self._step
        self._trained = None
        forward = self._forward_of(trained)
        self._step = forward.load(trained.prefix)
        problem = values.problem_of_values(trained.prefix, forward.not_finite())
        if problem:
            raise CheckpointError(problem)
        self._trained = trained
        return self._step

    def outputs(self, features: Features) -> Outputs:
        """Returns the outputs of the head in the order of the rows, see `Forward.outputs`.

        Raises:
          CheckpointError: they are not numbers.
          TrainingError: memory is out.
          ValueError: no weights are loaded.
        """
        trained, inference = self._trained, self._inference
        if self._forward is None or trained is None:
            raise ValueError("no weights are loaded")
        batching = inference.batching(trained.config, trained.max_seq_length)
        outputs = self._forward.outputs(features, batch_size=inference.batch_size, batching=batching)
        refuse_what_is_no_number(outputs, trained.prefix)
        return outputs

    def _forward_of(self, trained: Trained) -> Forward:
        """Returns the graph of an architecture: the one there is, or another in its place."""
        if self._forward is None or self._architecture != trained.architecture:
            self.close()
            model = Model(trained.config, trained.head, execution=self._inference.execution)
            self._forward, self._architecture = Forward(model, self._inference.machine), trained.architecture
        return self._forward

    def close(self) -> None:
        """Frees session and memory."""
        if self._forward is not None:
            self._forward.close()
        self._forward, self._architecture, self._trained = None, (), None
