"""Computes with many checkpoints in turn, in graphs built once."""

from __future__ import annotations

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.trained import Trained, refuse_what_is_no_number
from bert_tf.checkpoints import values
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.model_fn import Model
from bert_tf.features.columns import Features
from bert_tf.modeling.execution import Execution
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs


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
            model = Model(trained.config, trained.head, execution=self._inference.execution or Execution())
            self._forward, self._architecture = (
                Forward(model, self._inference.machine or Machine(session_config())),
                trained.architecture,
            )
        return self._forward

    def close(self) -> None:
        if self._forward is not None:
            self._forward.close()
        self._forward, self._architecture, self._trained = None, (), None
