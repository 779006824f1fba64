"""Optimizers by name: AdamW and LAMB; learning rates by step."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf import variables
from bert_tf.native import ops as native
from bert_tf.optimization import replicas
from bert_tf.optimization.gradients import scaled

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class AdamWConfig:
    """Constants of the update; the defaults are the published ones."""

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.01
    undecayed: str = "LayerNorm|layer_norm|bias"  # names of variables that do not decay
    bias_correction: bool = False  # arXiv 2006.05987 names its absence as a cause of unstable fine-tuning
    fused: bool = True  # one kernel per variable instead of a dozen element-wise operations
    native: bool = False  # one kernel for all variables, which also clips and decays; on CPUs


def is_decayed(variable: tf.Variable, config: AdamWConfig) -> bool:
    return bool(config.weight_decay) and not is_excluded(variable, config)


def is_excluded(variable: tf.Variable, config: AdamWConfig) -> bool:
    """Whether a variable is excluded from weight decay, even if the decay is 0."""
    return bool(re.search(config.undecayed, variable.name))


def moment_names(variable_name: str) -> tuple[str, str]:
    return f"{variable_name}/adam_m", f"{variable_name}/adam_v"


def zeros(shape: tf.TensorShape, dtype: tf.DType = tf.float32, **_: object) -> tf.Tensor:
    """Initializes moments; the graph optimizer would keep plain zeros in memory as a constant."""
    return tf.raw_ops.Empty(shape=tf.TensorShape(shape).as_list(), dtype=dtype, init=True)


def moved(
    weights: tf.Tensor, m: tf.Tensor, v: tf.Tensor, gradient: tf.Tensor, step: tf.Tensor, config: AdamWConfig, *, decay: float
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes an update op by op; `step` is a scalar integer, the number of steps before this one.

    Returns the decrement of the weights before it is multiplied by a rate, and both new moments.
    """
    m = config.beta_1 * m + (1.0 - config.beta_1) * gradient
    v = config.beta_2 * v + (1.0 - config.beta_2) * tf.square(gradient)
    corrected_m, corrected_v = m, v
    if config.bias_correction:
        t = tf.cast(step, tf.float32) + 1.0
        corrected_m = m / (1.0 - tf.pow(config.beta_1, t))
        corrected_v = v / (1.0 - tf.pow(config.beta_2, t))
    update = corrected_m / (tf.sqrt(corrected_v) + config.epsilon)
    if decay:
        update += decay * weights
    return update, m, v


class Trained(NamedTuple):
    """A variable and its moments."""

    weights: tf.Variable
    m: tf.Variable
    v: tf.Variable

    @property
    def name(self) -> str:
        return _name(self.weights)

    def assign(self, weights: tf.Tensor, m: tf.Tensor, v: tf.Tensor) -> tf.Operation:
        return tf.group([replicas.assign(variable, value) for variable, value in zip(self, (weights, m, v))])


def _with_moments(weights: Sequence[tf.Variable]) -> list[Trained]:
    shapes = {name: variable.shape for variable in weights for name in moment_names(_name(variable))}
    if variables.can_make():
        moments = variables.make_zeros(shapes)
        for moment in moments.values():
            tf1.add_to_collection(tf1.GraphKeys.GLOBAL_VARIABLES, moment)
    else:
        moments = {name: tf1.get_variable(name, shape, tf.float32, zeros, trainable=False) for name, shape in shapes.items()}
    return [Trained(variable, *map(moments.__getitem__, moment_names(_name(variable)))) for variable in weights]


def _name(variable: tf.Variable) -> str:
    return variable.name.rpartition(":")[0]  # its operation's name differs between replicas


class Optimizer:
    """Updates variables by gradients and moments `<variable>/adam_m` and `/adam_v`; subclasses define the rule."""

    def __init__(
        self,
        weights: Sequence[tf.Variable],
        rate: tf.Tensor,
        step: tf.Tensor,
        config: AdamWConfig,
        *,
        factors: Sequence[float] | None = None,
    ) -> None:
        """Creates the moments; call it in the outermost variable scope.

        `step` is a scalar integer, the number of steps before this one; `rate` is a scalar, multiplied by each variable's
        entry of `factors` (None for 1).
        """
        self._config = config
        self._variables = _with_moments(weights)
        self._rate, self._factors = rate, list(factors or [1.0] * len(weights))
        self._rates = [rate if factor == 1.0 else rate * factor for factor in self._factors]
        self._step = step
        self._prepare()

    def _prepare(self) -> None:
        """Computes what all updates of a step share; may be empty."""

    def apply(self, gradients: Sequence[tf.Tensor], scale: tf.Tensor | float = 1.0) -> tf.Operation:
        """Updates this replica's variables by gradients of the whole batch (equal on all replicas) times `scale`."""
        updates = []
        for trained, gradient, rate in zip(self._variables, scaled(gradients, scale), self._rates):
            if replicas.writes(trained.weights):
                with tf1.name_scope(f"update/{trained.name}/"):
                    updates.append(self._update(trained, gradient, rate))
        return tf.group(updates)

    def _update(self, trained: Trained, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        raise NotImplementedError

    def _decay(self, trained: Trained) -> float:
        return self._config.weight_decay if is_decayed(trained.weights, self._config) else 0.0


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as published with BERT (google-research/bert).

    For a gradient g at step t, with rate r:

        m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
        w = w - r (m / (sqrt(v) + epsilon) + decay w)

    With bias correction, m / (1 - b1^t) and v / (1 - b2^t) replace m and v in the second line.
    """

    def _prepare(self) -> None:
        config = self._config
        # The power of a beta that the fused kernel corrects by; 0 turns its correction off.
        self._beta_1_power = self._beta_2_power = tf.constant(0.0)
        self._epsilon = tf.constant(config.epsilon)
        if config.bias_correction:
            t = tf.cast(self._step, tf.float32) + 1.0
            self._beta_1_power = tf.pow(config.beta_1, t)
            self._beta_2_power = tf.pow(config.beta_2, t)
            # The kernel adds epsilon to sqrt(v), the definition to sqrt(v / (1 - b2^t)).
            self._epsilon = config.epsilon * tf.sqrt(1.0 - self._beta_2_power)

    def apply(self, gradients: Sequence[tf.Tensor], scale: tf.Tensor | float = 1.0) -> tf.Operation:
        """As `Optimizer.apply`; the native kernel scales gradients itself."""
        if not self._config.native:
            return super().apply(gradients, scale)
        by_device: dict[str, list[int]] = {}
        for index, trained in enumerate(self._variables):
            if replicas.writes(trained.weights):
                by_device.setdefault(trained.weights.device, []).append(index)
        with tf1.name_scope("update/"):
            return tf.group([self._native_part(indices, gradients, scale) for indices in by_device.values()])

    def _native_part(self, indices: Sequence[int], gradients: Sequence[tf.Tensor], scale: tf.Tensor | float) -> tf.Operation:
        config = self._config
        weights, m, v = ([self._variables[index][part].handle for index in indices] for part in range(3))
        correction = tf.constant(1.0)
        if config.bias_correction:
            correction = tf.sqrt(1.0 - self._beta_2_power) / (1.0 - self._beta_1_power)
        return native.adamw(
            weights=weights,
            first=m,
            second=v,
            gradients=[gradients[index] for index in indices],
            rate=self._rate,
            clip=scale,
            correction=correction,
            epsilon=self._epsilon,
            share_1=1.0 - config.beta_1,
            share_2=1.0 - config.beta_2,
            factors=[self._factors[index] for index in indices],
            decays=[self._decay(self._variables[index]) for index in indices],
        )

    def _update(self, trained: Trained, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        update = self._fused if self._config.fused else self._plain
        return update(trained, gradient, rate)

    def _plain(self, trained: Trained, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        weights, m, v = (variable.read_value() for variable in trained)
        update, m, v = moved(weights, m, v, gradient, self._step, self._config, decay=self._decay(trained))
        return trained.assign(weights - rate * update, m, v)

    def _fused(self, trained: Trained, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        config, decay = self._config, self._decay(trained)
        decayed = []
        if decay:
            with tf.control_dependencies([gradient]):
                share = rate * decay * trained.weights.read_value()
                decayed.append(tf.raw_ops.AssignSubVariableOp(resource=trained.weights.handle, value=share))
        with tf.control_dependencies(decayed):
            return tf.raw_ops.ResourceApplyAdam(
                var=trained.weights.handle,
                m=trained.m.handle,
                v=trained.v.handle,
                beta1_power=self._beta_1_power,
                beta2_power=self._beta_2_power,
                lr=rate,
                beta1=config.beta_1,
                beta2=config.beta_2,
                epsilon=self._epsilon,
                grad=gradient,
            )


class Lamb(Optimizer):
    """Adam with each variable's update scaled to the norm of its weights (You et al., 2019, arXiv 1904.00962, algorithm 2).

    For a gradient g at step t, counted from 1, with rate r:

        m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
        u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + decay w
        w = w - r |w| / |u| u

    with norms of the whole variable. As in the published code the ratio is 1 if a norm is 0, and for variables without
    decay: LayerNorm and biases. Bias correction belongs to the algorithm, whatever `AdamWConfig.bias_correction`.
    """

    def _update(self, trained: Trained, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        weights, m, v = (variable.read_value() for variable in trained)
        config = dataclasses.replace(self._config, bias_correction=True)
        update, m, v = moved(weights, m, v, gradient, self._step, config, decay=self._decay(trained))
        if not is_excluded(trained.weights, config):
            rate *= trust_ratio(weights, update)
        return trained.assign(weights - rate * update, m, v)


def trust_ratio(weights: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Weight norm divided by update norm; 1 if either is 0."""
    weight_norm, update_norm = tf.linalg.global_norm([weights]), tf.linalg.global_norm([update])
    return tf.where((weight_norm > 0.0) & (update_norm > 0.0), tf.math.divide_no_nan(weight_norm, update_norm), 1.0)


ADAMW = "adamw"

OPTIMIZERS: Mapping[str, type[Optimizer]] = {ADAMW: AdamW, "lamb": Lamb}


LINEAR = "linear"

# Remaining share of the peak, by the finished share of the decay and the power of the polynomial.
SCHEDULES: Mapping[str, Callable[[tf.Tensor, float], tf.Tensor]] = {
    LINEAR: lambda progress, _: 1.0 - progress,
    "cosine": lambda progress, _: 0.5 + 0.5 * tf.cos(math.pi * progress),  # Loshchilov and Hutter, 2017
    "constant": lambda progress, _: tf.ones_like(progress),
    "polynomial": lambda progress, power: tf.pow(1.0 - progress, power),
}


def learning_rate(
    step: tf.Tensor, *, peak: float, warmup_steps: int, total_steps: int, schedule: str = LINEAR, power: float = 1.0
) -> tf.Tensor:
    """Rises linearly from 0 at step 0 to the peak, then follows a curve that ends at `total_steps`.

    `step` is an integer of any shape, the number of steps before this one: with warm-up, the first update has rate 0. The curve
    begins at the end of warm-up, but the linear one at step 0, as in the published code, so the rate drops a little at the end
    of warm-up: peak * (1 - step / total_steps). Returns float32.
    """
    steps = tf.cast(step, tf.float32)
    begin = 0 if schedule == LINEAR else warmup_steps
    down = float(total_steps - begin)
    progress = tf.clip_by_value(steps - float(begin), 0.0, down) / max(down, 1.0)
    falling = peak * SCHEDULES[schedule](progress, power)
    if not warmup_steps:
        return falling
    rising = peak * steps / float(warmup_steps)
    return tf.where(steps < float(warmup_steps), rising, falling)
