"""A model without training, built once, whose weights are exchanged: many checkpoints, or many files, in one process."""

from __future__ import annotations

import os
from pathlib import Path

import tensorflow as tf

from bert_tf.checkpoints import values
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.model_fn import PREDICT, Model, make_model_fn
from bert_tf.features.columns import Features
from bert_tf.fields import INPUTS
from bert_tf.inputs.pipeline import TO_LONGEST, Batching, eval_batches
from bert_tf.modeling.heads import registry as heads
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs

tf1 = tf.compat.v1


class Forward:
    """The graph of a model on one device of a machine, and the session that computes it; to be closed."""

    def __init__(self, model: Model, machine: Machine) -> None:
        """Builds the graph; `load` has to follow.

        Args:
          model: what to compute.
          machine: where.
        """
        self._graph = tf.Graph()
        with self._graph.as_default(), tf1.device(machine.plan.device_function):
            self._head, self._hidden_size = heads.of(model.head), model.config.hidden_size
            self._inputs = {
                field.name: tf1.placeholder(field.dtype, field.shape(None, None), field.name)
                for field in (*INPUTS, *self._head.inputs)
            }
            self._outputs = make_model_fn(model)(self._inputs, PREDICT).predictions
            self._variables = tf1.trainable_variables()
            self._saver = tf1.train.Saver(self._variables)
            self._finite = [tf.reduce_all(tf.math.is_finite(variable)) for variable in self._variables]
            self._step = tf1.train.get_or_create_global_step()
            self._whole_saver = tf1.train.Saver([*self._variables, self._step])
        self._graph.finalize()
        self._session = tf1.Session(graph=self._graph, config=machine.session_config)

    def load(self, checkpoint: str) -> int:
        """Takes the weights of a checkpoint in the place of those before; returns its step, 0 where it has none.

        Raises:
          CheckpointError: it is damaged, or of another model; the weights are then those of neither.
        """
        reader = CheckpointReader(checkpoint)
        wanted = {variable.op.name: tuple(variable.shape.as_list()) for variable in self._variables}
        for name, shape in wanted.items():
            found = reader.shapes.get(name)
            if found != shape:
                state = "is missing" if found is None else f"is {list(found)}, expected {list(shape)}"
                raise CheckpointError(f"{checkpoint}: {name} {state}; is it of another model or task?")
        problem = values.problem_of_types(reader, wanted)
        if problem:
            raise CheckpointError(problem)
        # Outside of a graph a saver would build another one.
        with readable_errors(checkpoint), values.as_float32(checkpoint) as prefix, self._graph.as_default():
            try:
                self._saver.restore(self._session, prefix)
            except tf.errors.OpError:
                for name in wanted:
                    reader[name]  # says what is damaged, which the graph does not
                raise
            step = int(reader["global_step"]) if "global_step" in reader.shapes else 0
            self._step.load(step, self._session)
        return step

    def not_finite(self) -> list[str]:
        """Returns the names of variables whose weights are loaded and not finite."""
        finite = self._session.run(self._finite)
        return [variable.op.name for variable, is_finite in zip(self._variables, finite) if not is_finite]

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Writes what is loaded as a checkpoint: weights and their step, without moments.

        Args:
          prefix: folder/name.

        Raises:
          OutputError: it cannot be written.
        """
        with readable_errors(os.fspath(Path(prefix).parent)), self._graph.as_default():
            self._whole_saver.save(self._session, os.fspath(prefix), write_meta_graph=False, write_state=False)

    def outputs(self, features: Features, *, batch_size: int | None = None, batching: Batching = TO_LONGEST) -> Outputs:
        """Returns the outputs of the head in the order of the rows: [N, ...] or [total, ...] by their axes.

        Args:
          features: targets are not looked at.
          batch_size: rows at a time; None for as many as suit their lengths.
          batching: how to pad.

        Raises:
          TrainingError: memory is out.
        """
        fields = [field.sized(self._hidden_size) for field in self._head.outputs]
        results = {field.name: features.empty(field) for field in fields}
        with readable_errors("prediction"):
            for units in eval_batches(features, batch_size, batching):
                rows = features.rows_of(units)
                batch = features.batch(rows, batching.tokens(int(features.lengths[rows].max())))
                fed = {tensor: batch[name] for name, tensor in self._inputs.items()}
                found = self._session.run(self._outputs, fed)
                for field in fields:
                    results[field.name][features.places(field.axis, rows)] = found[field.name]
        return results

    def close(self) -> None:
        """Frees session and memory."""
        self._session.close()
