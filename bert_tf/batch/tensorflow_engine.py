"""Computes with many checkpoints in turn, in graphs built once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.trained import Trained, refuse_what_is_no_number
from bert_tf.checkpoints.reader import problem_of_values, refuse_problem
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.features.columns import Features
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs

T = TypeVar("T")

_MOST_HEADS = 12  # in one graph, which each makes larger; then it is built anew, with the latest


class TensorFlowEngine:
    """TensorFlow engine: holds the graph of one architecture and the weights of one checkpoint; must be closed.

    Models of one checkpoint that differ by their heads share the weights.
    """

    def __init__(self, inference: InferenceOptions) -> None:
        self._inference = inference
        self._forward: Forward | None = None
        self._model: Model | None = None  # of the graph, made for one head
        self._weights: tuple[object, ...] = ()  # see `Trained.weights`
        self._trained: Trained | None = None
        self._step = 0

    def load(self, trained: Trained) -> int:
        """Loads weights and returns their step; CheckpointError if damaged, not finite, or of another model."""
        if self._trained is trained:
            return self._step
        forward = self._forward
        is_loaded = forward is not None and bool(self._weights) and self._weights == trained.weights
        if forward is None or not is_loaded:
            self._replace(trained)
        elif trained.head not in forward.heads:
            if len(forward.heads) < _MOST_HEADS:
                forward.add(trained.head)
            else:
                self.close()
                self._replace(trained)
        self._trained = trained
        return self._step

    def _replace(self, trained: Trained) -> None:
        """Loads another checkpoint, into the same graph if it suits."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            execution = (self._inference.execution or Execution()).for_rows(trained.config, trained.max_seq_length)
            model = Model(trained.config, trained.head, execution=execution)
            if self._forward is None or self._model != model or [trained.head] != list(self._forward.heads):
                self.close()
                self._forward = Forward(model, self._inference.machine or Machine(session_config()))
            self._step = self._forward.load(trained.prefix)
            refuse_problem(problem_of_values(trained.prefix, self._forward.not_finite()))
            trained.refuse_changed()
            undo.pop_all()
        self._model, self._weights = model, trained.weights

    def outputs(self, features: Features) -> Outputs:
        """Head outputs in the order of the rows, see `Forward.outputs`; CheckpointError if not finite.

        Raises TrainingError if out of memory, ValueError if no weights are loaded.
        """
        trained, inference = self._trained, self._inference
        if self._forward is None or trained is None:
            raise ValueError("no weights are loaded")
        batching = inference.batching(trained.config, trained.max_seq_length)
        outputs = self._forward.outputs(features, trained.head, batch_size=inference.batch_size, batching=batching)
        refuse_what_is_no_number(outputs, trained.prefix)
        return outputs

    @property
    def graph(self) -> object:
        """The loaded graph, which is another one after `close`, or after a checkpoint of another architecture."""
        return self._forward

    def extend(self, build: Callable[[], T]) -> tuple[tf.compat.v1.Session, T]:
        """Adds to the graph of the loaded weights, see `Forward.extend`."""
        if self._forward is None or self._trained is None:
            raise ValueError("no weights are loaded")
        return self._forward.extend(build)

    def close(self) -> None:
        if self._forward is not None:
            self._forward.close()
        self._forward, self._model, self._weights, self._trained = None, None, (), None
