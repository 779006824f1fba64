"""One step of training in the graph: from a loss to new weights."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from bert_tf.modeling.embeddings import Lookup
from bert_tf.optimization import replicas
from bert_tf.optimization.adamw import AdamW, AdamWConfig
from bert_tf.optimization.deferred import DeferredTable
from bert_tf.optimization.gradients import clip_by_global_norm, dense_gradients, on_own_devices
from bert_tf.optimization.loss_scale import LossScale
from bert_tf.optimization.schedules import linear_warmup_decay

tf1 = tf.compat.v1

# Tensors that hooks fetch by name.
LOSS, LEARNING_RATE, GRADIENT_NORM = "watch/loss", "watch/learning_rate", "watch/gradient_norm"
SKIPPED_STEPS = "watch/skipped_steps"  # of loss scaling
STOP, STOPS = "watch/stop", "watch/stops"  # on several machines: fed with 1 to stop, and added up
BEFORE_SAVING = "bert_tf/before_saving"  # collection of operations that checkpoints wait for
NOT_FINITE = "the loss or its gradient is not a finite number"


@dataclasses.dataclass(frozen=True)
class Optimization:
    """How the weights are updated."""

    learning_rate: float  # peak
    warmup_steps: int
    total_steps: int
    clip_norm: float = 1.0
    defer_embeddings: bool = True  # makes up for the updates of unused rows when they are next read
    loss_scaling: bool = False  # for float16
    adamw: AdamWConfig = dataclasses.field(default_factory=AdamWConfig)


def _can_defer(optimization: Optimization) -> bool:
    """Replicas read different rows; a step that loss scaling skips moves no row; a decay past zero has no logarithm."""
    shrinking = optimization.learning_rate * optimization.adamw.weight_decay < 1.0
    return replicas.count() == 1 and shrinking and not optimization.loss_scaling


class Update:
    """One step of training: from a loss to new weights."""

    def __init__(self, optimization: Optimization) -> None:
        """Reads the step and its learning rate."""
        self._optimization = optimization
        self._step = tf1.train.get_or_create_global_step()
        self._rate_at = functools.partial(
            linear_warmup_decay,
            peak=optimization.learning_rate,
            warmup_steps=optimization.warmup_steps,
            total_steps=optimization.total_steps,
        )
        self._loss_scale = LossScale() if optimization.loss_scaling else None
        self._table: DeferredTable | None = None
        if optimization.defer_embeddings and _can_defer(optimization):
            self._table = DeferredTable(
                optimization.adamw, self._rate_at, self._step.read_value(), total_steps=optimization.total_steps
            )

    @property
    def lookup(self) -> Lookup:
        """How the encoder reads the table of words."""
        return self._table.lookup if self._table else tf.gather

    def apply(self, loss: tf.Tensor) -> tf.Operation:
        """Updates the weights; the step counts up when it is done.

        Args:
          loss: scalar, this replica's part of the loss: the parts of all replicas add up to it.

        Numbers that are not finite stop the run before any weight changes.
        """
        step, rate = self._step.read_value(), self._rate_at(self._step.read_value())
        variables = [v for v in tf1.trainable_variables() if self._table is None or v is not self._table.table]
        sources = variables + ([self._table.gradient_source] if self._table else [])
        scaled = loss if self._loss_scale is None else self._loss_scale.scale(loss)
        stop = tf1.placeholder_with_default(0.0, [], name=STOP)
        *gradients, loss, stops = replicas.add_up([*dense_gradients(scaled, sources), loss, stop])
        tf.identity(stops, name=STOPS)
        if self._loss_scale is not None:
            gradients = self._loss_scale.unscale(gradients)
        gradients, norm = clip_by_global_norm(gradients, self._optimization.clip_norm)
        watched = {LOSS: loss, LEARNING_RATE: rate, GRADIENT_NORM: norm}
        if self._loss_scale is not None:
            watched[SKIPPED_STEPS] = self._loss_scale.skipped
        for name, value in watched.items():
            tf.identity(value, name=name)
        finite = tf.math.is_finite(norm + loss)
        usable = finite
        if self._loss_scale is not None:  # another scale cures gradients, not the loss
            usable = tf.math.is_finite(loss) & (finite | ~self._loss_scale.at_end)
        with tf.control_dependencies([tf.debugging.Assert(usable, [NOT_FINITE])]):
            gradients = on_own_devices(tf.identity, gradients)
        adamw = AdamW(variables, rate, step, self._optimization.adamw)

        def update() -> tf.Operation:
            updates = [adamw.apply(gradients[: len(variables)])]
            if self._table:
                updates.append(self._table.apply(gradients[-1]))
            return tf.group(updates)

        updated = update() if self._loss_scale is None else self._loss_scale.update_if(finite, update)
        if self._table:
            tf1.add_to_collection(BEFORE_SAVING, self._table.make_current())
        with tf.control_dependencies([updated]):
            return self._step.assign_add(1, read_value=False)
