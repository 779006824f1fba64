"""An inference-only model, built once per device: exchangeable weights, several heads; for many checkpoints or many files."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import os
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf import variables
from bert_tf.checkpoints.names import encoder_shapes, is_training_only
from bert_tf.checkpoints.reader import (
    CheckpointReader,
    as_float32,
    model_reader,
    problem_of_values,
    refuse_misfits,
    refuse_problem,
    write_checkpoint,
)
from bert_tf.estimator import describe
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.model_fn import PREDICT, Model, make_model_fn
from bert_tf.estimator.saver import save_only
from bert_tf.features.batching import TO_LONGEST, Batching, Rows, eval_batches
from bert_tf.features.columns import Array, Features
from bert_tf.fields import INPUTS, Field
from bert_tf.head_spec import HeadSpec
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import Outputs

if TYPE_CHECKING:
    from bert_tf.runtime.placement import DeviceFunction

tf1 = tf.compat.v1
T = TypeVar("T")

_AT_A_TIME = 2  # concurrent batches on a CPU
_NOTHING: Mapping[Any, Any] = types.MappingProxyType({})

# Outputs by name, without padding, of a tower for a padded batch and its numbers of rows.
ComputeBatch = Callable[["Tower", Mapping[str, Array], Rows], Mapping[str, npt.NDArray[Any]]]


class Forward:
    """A model on all devices of a machine; must be closed.

    Each device has a copy of the weights and computes whole batches, so the number of devices changes no result.
    """

    def __init__(self, model: Model, machine: Machine) -> None:
        """Builds the graphs; `load` must follow."""
        self._model = model
        self._towers = [Tower(model, machine, device) for device in machine.plan.towers]
        self._at_a_time = 1 if machine.sees_gpu else _AT_A_TIME
        self._reader: CheckpointReader | None = None  # of the loaded weights

    def load(self, checkpoint: str, reader: CheckpointReader | None = None) -> int:
        """Replaces the weights by a checkpoint's, or those of a reader of several; returns its step, 0 if it has none.

        Raises CheckpointError if it is damaged or of another model; the weights are then undefined.
        """
        self._reader = reader = model_reader(checkpoint) if reader is None else reader
        for head in self.heads:
            self._fill(head, reader)
        step = int(reader["global_step"]) if "global_step" in reader.shapes else 0
        self._on_each(lambda tower: tower.set_step(step))
        return step

    @property
    def heads(self) -> Collection[HeadSpec]:
        return self._towers[0].heads

    def add(self, head: HeadSpec) -> None:
        """Adds a head of the loaded checkpoint, which shares the weights of the others.

        Raises CheckpointError as `load`, also for values that are not finite; the other heads stay.
        """
        reader = self._reader
        if reader is None:
            raise ValueError("no weights are loaded")
        with contextlib.ExitStack() as undo:
            undo.callback(self._drop, head)
            for tower in self._towers:
                tower.add(dataclasses.replace(self._model, head=head, around=None))
            self._fill(head, reader)
            refuse_problem(problem_of_values(reader.prefix, self.not_finite()))
            undo.pop_all()

    def _drop(self, head: HeadSpec) -> None:
        for tower in self._towers:
            tower.heads.pop(head, None)

    def extend(self, build: Callable[[], T]) -> tuple[tf1.Session, T]:
        """Adds what `build` makes of the weights to the graph of the first device, and returns it with the session."""
        tower = self._towers[0]
        with tower.building():
            return tower.session, build()

    def _fill(self, head: HeadSpec, reader: CheckpointReader) -> None:
        """Loads the variables that a head has brought."""
        shapes = {variable.op.name: tuple(variable.shape.as_list()) for variable in self._towers[0].heads[head].variables}
        if not shapes:  # the file may be gone
            return
        refuse_misfits(reader, shapes)
        if reader.composed:
            weights = {name: np.asarray(reader[name], np.float32) for name in shapes}
            self._on_each(lambda tower: tower.assign(head, weights))
            return
        with readable_errors(reader.prefix), as_float32(reader.prefix) as prefix:
            try:
                self._on_each(lambda tower: tower.restore(head, prefix))
            except tf.errors.OpError:
                for name in shapes:
                    reader[name]  # names the damaged entry, unlike the graph
                raise

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
        reader = self._reader
        with readable_errors(os.fspath(Path(prefix).parent)):
            if reader is None or not reader.composed:
                self._towers[0].save(os.fspath(prefix))
                return
            stored = CheckpointReader(reader.prefix)
            write_checkpoint(prefix, {name: stored[name] for name in stored.shapes if not is_training_only(name)})

    def outputs(
        self,
        features: Features,
        head: HeadSpec | None = None,
        *,
        batch_size: int | None = None,
        batching: Batching = TO_LONGEST,
        compute: ComputeBatch | None = None,
    ) -> Outputs:
        """Returns a head's outputs in row order, [N, ...] or [total, ...]; raises TrainingError if out of memory.

        `head` is the model's or one that was added; None is the model's. `batch_size` is per device; None picks one to suit
        the row lengths. A CPU then computes two batches at a time, since some operations use one core only. Targets in
        `features` are ignored. `compute` may leave out outputs, which are then undefined.
        """
        head = head or self._model.head
        fields = {field.name: field for field in self._towers[0].heads[head].fields}
        results = {name: features.empty(field) for name, field in fields.items()}
        waiting = collections.deque(eval_batches(features, batch_size, batching))

        def compute_batches(tower: Tower) -> None:
            try:
                for rows in _taken(waiting):
                    batch = features.batch(rows, batching.tokens(int(features.lengths[rows].max())))
                    of_batch = tower.outputs(head, batch) if compute is None else compute(tower, batch, rows)
                    for name, output in of_batch.items():
                        results[name][features.places(fields[name].axis, rows)] = output
            finally:
                waiting.clear()  # if one device fails, the others stop too

        with readable_errors("prediction"):
            self._on_each(compute_batches, times=1 if batch_size else self._at_a_time)
        return results

    def log_graph(self, tokens: int, loaded: Collection[str]) -> None:
        """Logs inputs and variables in the published format, see `describe.log_graph`; `tokens` is the longest input."""
        describe.log_graph(self._towers[0].inputs, tokens, self._towers[0].variables, loaded)

    def close(self) -> None:
        for tower in self._towers:
            tower.session.close()

    def _on_each(self, do: Callable[[Tower], None], *, times: int = 1) -> None:
        """Runs `do` on all devices in parallel, `times` on each; one call runs in this thread, which receives signals."""
        first, *others = self._towers * times
        with concurrent.futures.ThreadPoolExecutor(len(others) + 1) as pool:  # starts one thread per task
            running = [pool.submit(do, tower) for tower in others]
            do(first)
            for other in running:
                other.result()


class _Head(NamedTuple):
    """A head in a graph; `variables` are those that no head before it has."""

    fields: Sequence[Field]
    inputs: Mapping[str, tf.Tensor]  # placeholders
    outputs: Mapping[str, tf.Tensor]  # without padding
    variables: Sequence[tf.Variable]
    sums: Sequence[tf.Tensor]  # of their squares
    saver: tf1.train.Saver | None  # None if there are no variables


class Tower:
    """A copy of a model: its graph on a device and its session, which must be closed."""

    def __init__(self, model: Model, machine: Machine, device: str | DeviceFunction | None) -> None:
        self.graph, self._device = tf.Graph(), device
        self._inputs: dict[str, tf.Tensor] = {}  # placeholders of all heads
        self._encoder: Mapping[str, tf.Variable] = {}  # without initial values, if TensorFlow lets us make them
        self._taken: set[str] = set()  # variables of the encoder that a head reads
        self.heads: dict[HeadSpec, _Head] = {}
        with self.building():
            if variables.can_make():
                self._encoder = variables.make(encoder_shapes(model.config))
            self._step = tf1.train.get_or_create_global_step()
        self.add(model)
        with self.graph.as_default():
            # File names are strings, for which GPUs have no kernels.
            self._whole_saver = tf1.train.Saver([*self.variables, self._step], sharded=True, builder=save_only())
        self.session = tf1.Session(graph=self.graph, config=machine.session_config)

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """A block adds to the graph, on the device, with the variables that are there."""
        offered = variables.offered(self._encoder, self._taken, reuse=tf1.AUTO_REUSE)
        with self.graph.as_default(), tf1.device(self._device), offered:
            yield

    def add(self, model: Model) -> None:
        head, known = model.whole_head, {variable.op.name for variable in self.variables}
        with self.building():
            inputs = {field.name: self._input(field) for field in (*INPUTS, *head.inputs)}
            # The graph optimizer ignores the shapes of fed placeholders, and would fuse less.
            shaped = {name: tf.ensure_shape(tensor, tensor.shape) for name, tensor in inputs.items()}
            outputs: Mapping[str, tf.Tensor] = make_model_fn(model)(shaped, PREDICT).predictions or {}
            new = [variable for variable in tf1.trainable_variables() if variable.op.name not in known]
            sums = [tf.nn.l2_loss(variable) for variable in new]
        with self.graph.as_default():
            saver = tf1.train.Saver(new) if new else None
        fields = [field.sized(model.config.hidden_size) for field in head.outputs]
        self.heads[model.head] = _Head(fields, inputs, outputs, new, sums, saver)

    def _input(self, field: Field) -> tf.Tensor:
        if field.name not in self._inputs:
            self._inputs[field.name] = tf1.placeholder(field.dtype, field.shape(None, None), field.name)
        return self._inputs[field.name]

    @property
    def inputs(self) -> Mapping[str, tf.Tensor]:
        return self._inputs

    @property
    def variables(self) -> list[tf.Variable]:
        """Those that a checkpoint provides."""
        return [variable for head in self.heads.values() for variable in head.variables]

    def restore(self, head: HeadSpec, prefix: str) -> None:
        saver = self.heads[head].saver
        if saver is not None:
            with self.graph.as_default():  # otherwise the saver would build a graph of its own
                saver.restore(self.session, prefix)

    def assign(self, head: HeadSpec, weights: Mapping[str, Array]) -> None:
        """Sets the variables of a head, by feeding the results of the operation that would read them."""
        saver = self.heads[head].saver
        if saver is None:
            return
        restore = saver.saver_def.restore_op_name
        read = self.graph.get_operation_by_name(f"{restore.rpartition('/')[0]}/RestoreV2")
        names = [name.decode() for name in tf.get_static_value(read.inputs[1])]
        self.session.run(restore, dict(zip(read.outputs, map(weights.__getitem__, names))))

    def set_step(self, step: int) -> None:
        self.session.run(self._step.initializer, {self._step.initializer.inputs[1]: step})

    def save(self, prefix: str) -> None:
        with self.graph.as_default():
            self._whole_saver.save(self.session, prefix, write_meta_graph=False, write_state=False)

    def not_finite(self) -> list[str]:
        sums = self.session.run([head.sums for head in self.heads.values()])  # infinite for weights beyond 1e19, too
        totals = [total for of_head in sums for total in of_head]
        doubtful = [variable for variable, total in zip(self.variables, totals) if not np.isfinite(total)]
        return [variable.op.name for variable in doubtful if not np.isfinite(self.session.run(variable)).all()]

    def outputs(self, head: HeadSpec, batch: dict[str, Array]) -> dict[str, npt.NDArray[np.generic]]:
        """Returns the outputs of a batch, without padding."""
        return self.run(head, self.heads[head].outputs, batch)

    def run(
        self,
        head: HeadSpec,
        fetched: Mapping[str, tf.Tensor],
        batch: Mapping[str, Array],
        stages: Mapping[tf.Tensor, Array] = _NOTHING,
    ) -> dict[str, npt.NDArray[np.generic]]:
        """Returns tensors by name, of what a head reads; `stages` replaces some, so that nothing before them is computed."""
        fed = {tensor: batch[name] for name, tensor in self.heads[head].inputs.items()}
        outputs: dict[str, npt.NDArray[Any]] = self.session.run(dict(fetched), {**fed, **stages})
        return outputs


def _taken(waiting: collections.deque[Rows]) -> Iterator[Rows]:
    """Yields batches that no other thread has taken yet."""
    while True:
        try:
            rows = waiting.popleft()
        except IndexError:
            return
        yield rows
