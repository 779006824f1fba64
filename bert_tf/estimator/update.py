"""One training step in the graph: from a loss to new weights."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Union

import tensorflow as tf

from bert_tf.estimator import stamps
from bert_tf.modeling.execution import WHOLE, Adaptation
from bert_tf.modeling.layers import WORDS, Lookup
from bert_tf.native import ops as kernels
from bert_tf.optimization import replicas
from bert_tf.optimization.deferred import MOST_STEPS, DeferredTable
from bert_tf.optimization.gradients import Features, LossScale, add_up, clipping, dense_gradients, scaled
from bert_tf.optimization.optimizers import ADAMW, LINEAR, OPTIMIZERS, AdamWConfig, learning_rate
from bert_tf.optimization.parts import EMBEDDINGS, LayerDecay, Part, part_of

if TYPE_CHECKING:
    from bert_tf.optimization.averaging import MovingAverage

tf1 = tf.compat.v1

# Tensors that hooks fetch by name.
LOSS, LEARNING_RATE, GRADIENT_NORM = "watch/loss", "watch/learning_rate", "watch/gradient_norm"
SKIPPED_STEPS = "watch/skipped_steps"  # skipped by loss scaling
STOP, STOPS = "watch/stop", "watch/stops"  # with several machines: fed 1 to stop, then summed
UNCHANGED = "bert_tf/unchanged"  # collection of variables that keep the values of the initial checkpoint, which are not saved
BEFORE_SAVING = "bert_tf/before_saving"  # collection of operations that checkpoints wait for
AVERAGED = "bert_tf/averaged"  # collection of updates of the weights' moving average; empty without one
NOT_FINITE = "the loss or its gradient is not a finite number"


LossOf = Callable[[Features, Union[int, tf.Tensor]], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Optimization:
    learning_rate: float  # peak
    warmup_steps: int
    total_steps: int  # from `begin`
    begin: int = 0  # of the schedule: the run's step that counts as its first
    schedule: str = LINEAR  # of `optimization.optimizers`
    polynomial_power: float = 2.0
    layer_decay: LayerDecay = dataclasses.field(default_factory=LayerDecay)
    frozen: frozenset[Part] = frozenset()  # parts of the model that keep their weights
    micro_batches: int = 1  # parts of a batch, computed one after the other
    clip_norm: float = 1.0
    defer_embeddings: bool = True  # applies missed updates of unused rows when they are next read
    loss_scaling: bool = False  # for float16
    adamw: AdamWConfig = dataclasses.field(default_factory=AdamWConfig)
    average: MovingAverage | None = None  # of the weights, kept beside them
    optimizer: str = ADAMW  # of `optimization.optimizers`


def _can_defer(optimization: Optimization) -> bool:
    """Not with replicas (different rows), loss scaling (skipped steps move no row) or a decay past zero (no logarithm).

    Nor beyond `MOST_STEPS` steps, or with LAMB, which needs the norm of the whole table.
    """
    shrinking = optimization.learning_rate * optimization.adamw.weight_decay < 1.0
    trained = EMBEDDINGS not in optimization.frozen
    counted = optimization.total_steps <= MOST_STEPS
    by_row = optimization.optimizer == ADAMW
    return trained and by_row and replicas.count() == 1 and shrinking and counted and not optimization.loss_scaling


class Update:
    def __init__(self, optimization: Optimization, *, adaptation: Adaptation = WHOLE, defers: bool = True) -> None:
        """`defers`: unused word vectors may be updated late, which is wrong if outputs are computed with the whole table."""
        self._optimization = optimization
        self._adaptation = adaptation
        self._step = tf1.train.get_or_create_global_step()
        self._loss_scale: LossScale | None = None
        if optimization.loss_scaling:
            self._loss_scale = LossScale()
        self._table: DeferredTable | None = None
        defers = defers and optimization.defer_embeddings and adaptation.trains(WORDS)
        if defers and _can_defer(optimization):
            rate_at = functools.partial(self._rate_at, factor=optimization.layer_decay.factor_of(EMBEDDINGS))
            self._table = DeferredTable(
                optimization.adamw,
                rate_at,
                self._done(),
                total_steps=optimization.total_steps,
                average=optimization.average,
            )

    def _done(self) -> tf.Tensor:
        """Returns the steps of the schedule before this one."""
        step = self._step.read_value()
        return step - self._optimization.begin if self._optimization.begin else step

    def _rate_at(self, step: tf.Tensor, *, factor: float = 1.0) -> tf.Tensor:
        rate = learning_rate(
            step,
            peak=self._optimization.learning_rate,
            warmup_steps=self._optimization.warmup_steps,
            total_steps=self._optimization.total_steps,
            schedule=self._optimization.schedule,
            power=self._optimization.polynomial_power,
        )
        return rate if factor == 1.0 else rate * factor

    @property
    def lookup(self) -> Lookup:
        if self._table is None:
            return tf.gather
        return self._table.lookup

    def minimize(self, loss_of: LossOf, features: Features) -> tuple[tf.Tensor, tf.Operation]:
        """Returns the contribution of this replica's examples to the loss, and the update, which then increments the step.

        `loss_of` maps the features of some examples ([B, ...] each, and scalars) and their micro-batch number to a scalar:
        their share of the whole batch's loss over all replicas. Non-finite numbers stop the run before a weight changes.
        """
        loss = loss_of(features, 0)
        trained = [v for v in tf1.trainable_variables() if part_of(v.name) not in self._optimization.frozen and self._trains(v)]
        variables = [v for v in trained if self._table is None or v is not self._table.table]  # its rows are updated late
        if replicas.number() == 0:
            unchanged = (v for v in tf1.trainable_variables() if not self._trains(v))
            tf1.get_collection_ref(UNCHANGED).extend(unchanged)
        sources: list[tf.Tensor | tf.Variable] = [*variables]
        if self._table and self._table.gradient_source is not None:
            sources.append(self._table.gradient_source)

        def differentiate(loss: tf.Tensor) -> list[tf.Tensor]:
            return [loss, *dense_gradients(loss if self._loss_scale is None else self._loss_scale.scale(loss), sources)]

        if self._optimization.micro_batches == 1:
            stamps.mark_done(stamps.FORWARD, loss, after=[])
            (gate,) = stamps.gate(stamps.FORWARD, [tf.ones([], loss.dtype)])  # the backward pass begins with it
            loss, *gradients = differentiate(loss * gate)
        else:  # the loss above is never computed, but its graph creates the variables, and the table reads the whole batch
            loss, *gradients = add_up(
                lambda some, number: differentiate(loss_of(some, number)),
                features,
                self._optimization.micro_batches,
                like=[loss, *sources],
            )
        return loss, self._apply(loss, variables, gradients)

    def _trains(self, variable: tf.Variable) -> bool:
        return self._adaptation.trains(variable.name.rpartition(":")[0])

    def _apply(self, loss: tf.Tensor, variables: Sequence[tf.Variable], gradients: Sequence[tf.Tensor]) -> tf.Operation:
        """Applies this replica's scaled gradients: those of the variables, and of the table's rows."""
        step, rate = self._done(), self._rate_at(self._done())
        loss, gradients = _added_up(loss, gradients)
        if self._loss_scale is not None:
            gradients = self._loss_scale.unscale(gradients)
        if self._optimization.adamw.native and self._optimization.optimizer == ADAMW:
            gradients[: len(variables)] = map(kernels.before_cast, gradients[: len(variables)])
        scale, norm = clipping(gradients, self._optimization.clip_norm)
        self._watch({LOSS: loss, LEARNING_RATE: rate, GRADIENT_NORM: norm})
        finite = tf.math.is_finite(norm + loss)
        usable = finite
        if self._loss_scale is not None:  # another scale fixes gradients, not the loss
            usable = tf.math.is_finite(loss) & (finite | ~self._loss_scale.at_end)
        with tf.control_dependencies([tf.debugging.Assert(usable, [NOT_FINITE])]):
            scale = tf.identity(scale)  # read by every update
        factors = [self._optimization.layer_decay.factor_of(part_of(variable.name)) for variable in variables]
        make = OPTIMIZERS[self._optimization.optimizer]
        optimizer = make(variables, rate, step, self._optimization.adamw, factors=factors)

        def update() -> tf.Operation:
            updates = [optimizer.apply(gradients[: len(variables)], scale)]
            if self._table:
                updates += map(self._table.apply, scaled(gradients[len(variables) :], scale))
            return tf.group(updates)

        updated = update() if self._loss_scale is None else self._loss_scale.update_if(finite, update)
        if self._table:
            tf1.add_to_collection(BEFORE_SAVING, self._table.make_current())
        average = self._optimization.average
        if average is not None:  # steps skipped by loss scaling count too, with unchanged weights
            with tf.control_dependencies([updated]):
                updated = average.follow(variables, step)
            tf1.add_to_collection(AVERAGED, updated)
        with tf.control_dependencies([updated]):
            return self._step.assign_add(1, read_value=False)

    def _watch(self, watched: Mapping[str, tf.Tensor]) -> None:
        """Names what hooks read of a step."""
        skipped = {} if self._loss_scale is None else {SKIPPED_STEPS: self._loss_scale.skipped}
        for name, value in {**watched, **skipped}.items():
            tf.identity(value, name=name)


def _added_up(loss: tf.Tensor, gradients: Sequence[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Returns loss and gradients of all replicas; also marks their times, and adds up who wants to stop."""
    stop = tf1.placeholder_with_default(0.0, [], name=STOP)
    stamps.mark_launched([*gradients, loss])  # free unless a hook fetches them
    stamps.mark_done(stamps.GRADIENTS, loss, after=gradients)
    (loss,) = stamps.gate(stamps.GRADIENTS, [loss])  # without it nothing is updated
    *gradients, loss, stops = replicas.add_up([*gradients, loss, stop])
    if replicas.count() > 1:
        stamps.mark_done(stamps.SUMS, loss, after=gradients)
        *gradients, loss = stamps.gate(stamps.SUMS, [*gradients, loss])
    tf.identity(stops, name=STOPS)
    return loss, gradients
