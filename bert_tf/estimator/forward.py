"""An inference-only model, built once per device, with exchangeable weights: for many checkpoints or many files."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf import variables
from bert_tf.checkpoints import values
from bert_tf.checkpoints.names import encoder_shapes, is_training_only
from bert_tf.checkpoints.reader import CheckpointReader, model_reader, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.estimator import describe
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.model_fn import PREDICT, Model, make_model_fn
from bert_tf.estimator.saver import save_only
from bert_tf.features.columns import Array, Features
from bert_tf.fields import INPUTS
from bert_tf.inputs.batching import TO_LONGEST, Batching, Rows, eval_batches
from bert_tf.runtime.machine import Machine
from bert_tf.runtime.placement import DeviceFunction
from bert_tf.tasks.base import Outputs

tf1 = tf.compat.v1

_AT_A_TIME = 2  # concurrent batches on a CPU


class Forward:
    """A model on all devices of a machine; must be closed.

    Each device has a copy of the weights and computes whole batches, so the number of devices changes no result.
    """

    def __init__(self, model: Model, machine: Machine) -> None:
        """Builds the graphs; `load` must follow."""
        self._head, self._hidden_size = model.whole_head, model.config.hidden_size
        self._towers = [_Tower(model, machine, device) for device in machine.plan.towers]
        self._at_a_time = 1 if machine.sees_gpu else _AT_A_TIME
        self._composed_from: str | None = None  # the loaded checkpoint, if it does not hold the whole model

    def load(self, checkpoint: str, reader: CheckpointReader | None = None) -> int:
        """Replaces the weights by a checkpoint's, or those of a reader of several; returns its step, 0 if it has none.

        Raises CheckpointError if it is damaged or of another model; the weights are then undefined.
        """
        reader = model_reader(checkpoint) if reader is None else reader
        self._composed_from = checkpoint if reader.composed else None
        shapes = {variable.op.name: tuple(variable.shape.as_list()) for variable in self._towers[0].variables}
        values.refuse_misfits(reader, shapes)
        step = int(reader["global_step"]) if "global_step" in reader.shapes else 0
        if reader.composed:
            weights = {name: np.asarray(reader[name], np.float32) for name in shapes}
            self._on_each(lambda tower: tower.assign(weights, step))
            return step
        with readable_errors(checkpoint), values.as_float32(checkpoint) as prefix:
            try:
                self._on_each(lambda tower: tower.restore(prefix, step))
            except tf.errors.OpError:
                for name in shapes:
                    reader[name]  # names the damaged entry, unlike the graph
                raise
        return step

    @property
    def variables(self) -> list[str]:
        """Names of the variables of the graph."""
        return [variable.op.name for variable in self._towers[0].variables]

    def not_finite(self) -> list[str]:
        return self._towers[0].not_finite()

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Saves the loaded weights and step, without moments, at `prefix` (folder/name); raises OutputError.

        A checkpoint that did not hold the whole model is saved as it was.
        """
        with readable_errors(os.fspath(Path(prefix).parent)):
            if self._composed_from is None:
                self._towers[0].save(os.fspath(prefix))
                return
            reader = CheckpointReader(self._composed_from)
            write_checkpoint(prefix, {name: reader[name] for name in reader.shapes if not is_training_only(name)})

    def outputs(self, features: Features, *, batch_size: int | None = None, batching: Batching = TO_LONGEST) -> Outputs:
        """Returns the head's outputs in row order, [N, ...] or [total, ...]; raises TrainingError if out of memory.

        `batch_size` is per device; None picks one to suit the row lengths. A CPU then computes two batches at a time,
        since some operations use one core only. Targets in `features` are ignored.
        """
        fields = [field.sized(self._hidden_size) for field in self._head.outputs]
        results = {field.name: features.empty(field) for field in fields}
        waiting = collections.deque(eval_batches(features, batch_size, batching))

        def compute(tower: _Tower) -> None:
            try:
                for rows in _taken(waiting):
                    batch = features.batch(rows, batching.tokens(int(features.lengths[rows].max())))
                    of_batch = tower.outputs(batch)
                    for field in fields:
                        results[field.name][features.places(field.axis, rows)] = of_batch[field.name]
            finally:
                waiting.clear()  # if one device fails, the others stop too

        with readable_errors("prediction"):
            self._on_each(compute, times=1 if batch_size else self._at_a_time)
        return results

    def log_graph(self, tokens: int, loaded: Collection[str]) -> None:
        """Logs inputs and variables in the published format, see `describe.log_graph`; `tokens` is the longest input."""
        describe.log_graph(self._towers[0].inputs, tokens, self._towers[0].variables, loaded)

    def close(self) -> None:
        for tower in self._towers:
            tower.session.close()

    def _on_each(self, do: Callable[[_Tower], None], *, times: int = 1) -> None:
        """Runs `do` on all devices in parallel, `times` on each; one call runs in this thread, which receives signals."""
        first, *others = self._towers * times
        with concurrent.futures.ThreadPoolExecutor(len(others) + 1) as pool:  # starts one thread per task
            running = [pool.submit(do, tower) for tower in others]
            do(first)
            for other in running:
                other.result()


class _Tower:
    """A copy of a model: its graph on a device and its session.

    `inputs` are placeholders by name, `variables` those that a checkpoint provides; `session` must be closed.
    """

    def __init__(self, model: Model, machine: Machine, device: str | DeviceFunction | None) -> None:
        head = model.whole_head
        self._graph = tf.Graph()
        with self._graph.as_default():
            with tf1.device(device):
                self.inputs = {
                    field.name: tf1.placeholder(field.dtype, field.shape(None, None), field.name)
                    for field in (*INPUTS, *head.inputs)
                }
                # The graph optimizer ignores the shapes of fed placeholders, and would fuse less.
                shaped = {name: tf.ensure_shape(tensor, tensor.shape) for name, tensor in self.inputs.items()}
                with _filled_by_a_checkpoint(model.config):
                    self._outputs = make_model_fn(model)(shaped, PREDICT).predictions
                self.variables = tf1.trainable_variables()
                self._sums = [tf.nn.l2_loss(variable) for variable in self.variables]
                self._step = tf1.train.get_or_create_global_step()
            # File names are strings, for which GPUs have no kernels.
            self._saver = tf1.train.Saver(self.variables)
            self._whole_saver = tf1.train.Saver([*self.variables, self._step], sharded=True, builder=save_only())
        self._graph.finalize()
        self.session = tf1.Session(graph=self._graph, config=machine.session_config)

    def restore(self, prefix: str, step: int) -> None:
        with self._graph.as_default():  # otherwise the saver would build a graph of its own
            self._saver.restore(self.session, prefix)
        self._set_step(step)

    def assign(self, weights: Mapping[str, Array], step: int) -> None:
        """Sets all variables, by feeding the results of the operation that would read them."""
        read = next(op for op in self._graph.get_operations() if op.type == "RestoreV2")
        names = [name.decode() for name in tf.get_static_value(read.inputs[1])]
        self.session.run(self._saver.saver_def.restore_op_name, dict(zip(read.outputs, map(weights.__getitem__, names))))
        self._set_step(step)

    def _set_step(self, step: int) -> None:
        self.session.run(self._step.initializer, {self._step.initializer.inputs[1]: step})

    def save(self, prefix: str) -> None:
        with self._graph.as_default():
            self._whole_saver.save(self.session, prefix, write_meta_graph=False, write_state=False)

    def not_finite(self) -> list[str]:
        sums = self.session.run(self._sums)  # of squares, which also are infinite for weights beyond 1e19
        doubtful = [variable for variable, total in zip(self.variables, sums) if not np.isfinite(total)]
        return [variable.op.name for variable in doubtful if not np.isfinite(self.session.run(variable)).all()]

    def outputs(self, batch: dict[str, Array]) -> dict[str, npt.NDArray[np.generic]]:
        """Returns the outputs of a batch, without padding."""
        fed = {tensor: batch[name] for name, tensor in self.inputs.items()}
        outputs: dict[str, npt.NDArray[Any]] = self.session.run(self._outputs, fed)
        return outputs


def _filled_by_a_checkpoint(config: BertConfig) -> contextlib.AbstractContextManager[object]:
    """The encoder's variables without initial values, if TensorFlow lets us make them."""
    return variables.made_at_once(encoder_shapes(config)) if variables.can_make() else contextlib.nullcontext()


def _taken(waiting: collections.deque[Rows]) -> Iterator[Rows]:
    """Yields batches that no other thread has taken yet."""
    while True:
        try:
            rows = waiting.popleft()
        except IndexError:
            return
        yield rows
