"""Defers updates of embedding rows that a batch does not use until the row is next read.

A row without a gradient still moves: its moments shrink, the shrinking first moment moves the weights, and they decay. That
costs a pass over the table and its moments in every step, for rows that nobody reads. Here each row stores the step that
it is current at; when it is read, the steps that it missed are applied at once. For steps s = t+1 ... t+n, with s
counted from the last update of the row, m and v its moments then, q = sqrt(beta_2) and D_s the decay after step s:

    w' = D w - m sum_s [ rate_s D_s (beta_1 / q)^s / (sqrt(v) + epsilon_s q^-s) ]
    m' = beta_1^n m        v' = beta_2^n v

Factors of s alone are one number per row; the sum over s for each element has the form sum_s a_s / (sqrt(v) + u_s),
with u_s in a narrow interval. Interpolating 1 / (sqrt(v) + u) in log(u) between Chebyshev nodes turns it into a sum over
the few nodes, with an error below float32's own. Terms under 1e-9 of the first are dropped.

The moving average of the weights (`averaging`) is linear in them, so it catches up in the same way. The missed steps count
d^(t+n-s) (1 - d) each; with R_t the sum of that over all steps before t, each with the decay between it and t undone:

    sum_s d^(t+n-s) (1 - d) D_(t,s) = R_(t+n) D - d^n R_t

Shapes: V entries of a table, U unique entries of a batch, D width, S missed steps, K nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.graphs import HOST, Gradient, with_gradient
from bert_tf.native import ops as kernels
from bert_tf.optimization.optimizers import AdamWConfig, is_decayed, moment_names, moved, zeros

if TYPE_CHECKING:
    from bert_tf.optimization.averaging import MovingAverage

tf1 = tf.compat.v1

DEFERRED = "bert_tf/deferred"  # collection of a table's variables: weights, moments, step of each row's last update

_NODES = 8
_NEGLIGIBLE = 1e-9
_CHUNK = 2048  # rows that are made current at once

MOST_STEPS = 1 << 24  # exact in float32; GPUs can update single entries of float32 tables, not of int32


class _Rows(NamedTuple):
    """Some rows of a table and of its moments, [U, D] each."""

    weights: tf.Tensor
    m: tf.Tensor
    v: tf.Tensor


class DeferredTable:
    """An embedding table in training on one device.

    `table` is the [V, D] variable, `gradient_source` the step's [U, D] rows by which a loss is differentiated (None
    before they are read).
    """

    def __init__(
        self,
        config: AdamWConfig,
        rate_at: Callable[[tf.Tensor], tf.Tensor],
        step: tf.Tensor,
        *,
        total_steps: int,
        average: MovingAverage | None = None,
    ) -> None:
        """`rate_at` maps integer steps of any shape, also after the last, to rates; `step` is a scalar int64.

        `step` counts the steps before this one. Raises ValueError if `total_steps` exceeds `MOST_STEPS`.
        """
        if total_steps > MOST_STEPS:
            raise ValueError(f"{total_steps} steps: updates can be deferred for at most {MOST_STEPS}")
        self._config = config
        self._rate_at = rate_at
        self._step = tf.cast(step, tf.float32)
        self._total = total_steps
        self._moving = average
        self.gradient_source: tf.Tensor | None = None

    def lookup(self, table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
        """Reads rows as of this step, [V, D] and [N] to [N, D], in the table's variable scope; ids may repeat.

        The first call makes the rows current; later calls, for micro-batches, must request a subset of its rows.
        """
        if self.gradient_source is not None:
            with tf.device(HOST):
                places = tf.gather(self._places, ids)
            return _rows_at(self.gradient_source, places)
        self.table = table
        self._decay = self._config.weight_decay if is_decayed(table, self._config) else 0.0
        own_name = table.op.name.rpartition("/")[2]
        self._m, self._v = (
            tf1.get_variable(name, table.shape, trainable=False, initializer=zeros) for name in moment_names(own_name)
        )
        # Not in checkpoints themselves: there every row is current at the checkpoint's step.
        self._current_at = tf1.get_variable(
            f"{own_name}/current_at",
            initializer=lambda: tf.fill(table.shape[:1], self._step),
            dtype=tf.float32,
            trainable=False,
            collections=[tf1.GraphKeys.LOCAL_VARIABLES],
        )
        self._average = self._make_average(self._moving, own_name) if self._moving else None
        for variable in (table, self._m, self._v, self._current_at, *([] if self._average is None else [self._average])):
            tf1.add_to_collection(DEFERRED, variable)
        with tf.device(HOST):  # it has the ids, and their number without waiting for a GPU
            self._ids, inverse = tf.unique(ids)
            self._places: tf.Tensor = tf.scatter_nd(self._ids[:, None], tf.range(tf.size(self._ids)), table.shape[:1])  # [V]
        self._rows, self._averages = self._made_current(self._ids)
        self.gradient_source = self._rows.weights
        return _rows_at(self.gradient_source, inverse)

    def apply(self, gradient: tf.Tensor) -> tf.Operation:
        """Updates the rows of this step by the gradient [U, D] of `gradient_source`."""
        with tf.device(self.table.device):
            update, m, v = moved(*self._rows, gradient, self._step, self._config, decay=self._decay)
            rows, average = _Rows(self._rows.weights - self._rate_at(self._step) * update, m, v), self._averages
            if self._moving is not None and average is not None:
                average += self._moving.share(self._step + 1.0) * (rows.weights - average)
            return self._write(self._ids, rows, average, self._step + 1)

    def make_current(self) -> tf.Operation:
        """Brings the whole table and its moments to this step, as checkpoints require."""
        entries = self.table.shape[0]

        def chunk(start: tf.Tensor) -> tf.Tensor:
            ids = tf.range(start, tf.minimum(start + _CHUNK, entries))
            with tf.control_dependencies([self._write(ids, *self._made_current(ids), self._step)]):
                return start + _CHUNK

        with tf.device(self.table.device):
            return tf.group(tf.while_loop(lambda start: start < entries, chunk, [tf.constant(0)], parallel_iterations=1))

    def _write(self, ids: tf.Tensor, rows: _Rows, average: tf.Tensor | None, step: tf.Tensor) -> tf.Operation:
        pairs = [*zip((self.table, self._m, self._v), rows)]
        if self._average is not None and average is not None:
            pairs.append((self._average, average))
        writes = [
            tf.raw_ops.ResourceScatterUpdate(resource=variable.handle, indices=ids, updates=values)
            for variable, values in pairs
        ]
        count = tf.shape(ids)
        with tf.control_dependencies([values for _, values in pairs]):  # they depend on the earlier `current_at`
            current = tf.fill(count, step)
        writes.append(tf.raw_ops.ResourceScatterUpdate(resource=self._current_at.handle, indices=ids, updates=current))
        return tf.group(writes)

    def _made_current(self, ids: tf.Tensor) -> tuple[_Rows, tf.Tensor | None]:
        config = self._config
        if config.native and self._moving is None:
            return self._natively_current(ids), None
        since = tf.gather(self._current_at, ids)  # [U]
        missed = (self._step - since)[:, None]  # [U, 1]
        m, v = tf.gather(self._m, ids), tf.gather(self._v, ids)
        stored = tf.gather(self.table, ids)
        decays = self._decays()
        decay = _at(decays, self._step) - _at(decays, since)  # [U]
        root = tf.sqrt(v)
        nodes, moving, averaging = self._quadrature(since, decays)
        rows = _Rows(
            stored + (stored * tf.math.expm1(decay)[:, None] - m * _summed(moving, nodes, root)),
            m * tf.pow(config.beta_1, missed),
            v * tf.pow(config.beta_2, missed),
        )
        if self._moving is None or self._average is None or averaging is None:
            return rows, None
        average = tf.gather(self._average, ids)
        joined, drift = self._joined(self._moving, since, decay)
        average += joined[:, None] * (stored - average) + drift[:, None] * stored
        return rows, average - m * _summed(averaging, nodes, root)

    def _natively_current(self, ids: tf.Tensor) -> _Rows:
        rates, epsilons = self._terms(tf.cast(tf.range(self._total), tf.float32))
        variables = {"table": self.table, "first": self._m, "second": self._v, "current_at": self._current_at}
        rows = kernels.made_current(
            **{name: variable.handle for name, variable in variables.items()},
            ids=ids,
            rates=rates,
            epsilons=tf.broadcast_to(epsilons, tf.shape(rates)),
            decays=self._decays(),
            step=self._step,
            beta_1=self._config.beta_1,
            beta_2=self._config.beta_2,
        )
        for row in rows:
            row.set_shape([None, self.table.shape[1]])
        return _Rows(*rows)

    def _make_average(self, moving: MovingAverage, own_name: str) -> tf.Variable:
        from bert_tf.optimization.averaging import shadow_name

        self._beyond = tf1.get_variable(
            f"{own_name}/beyond",
            initializer=lambda: moving.beyond(self._decays()),
            dtype=tf.float32,
            trainable=False,
            collections=[tf1.GraphKeys.LOCAL_VARIABLES],
        )
        return tf1.get_variable(shadow_name(own_name), self.table.shape, trainable=False, initializer=zeros)

    def _joined(self, moving: MovingAverage, since: tf.Tensor, decay: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """[U] weight of the missed steps in the average, and [U] the reduction of the weights there by their decay.

        Decay apart, rows stay where they are for n steps: the average moves towards them by (1 - d^n) / (1 - d^t).
        """
        missed, total = self._step - since, moving.counted(self._step)
        beyond = _at(self._beyond, self._step) * tf.exp(decay) - moving.faded(missed) * _at(self._beyond, since)
        return (
            tf.math.divide_no_nan(moving.counted(missed), total),
            tf.math.divide_no_nan(beyond, total) + tf.math.expm1(decay),
        )

    def _decays(self) -> tf.Tensor:
        """[total + 1] logarithms of the cumulative decay before each step; a constant once the graph is optimized."""
        rates = self._rate_at(tf.range(self._total))
        return tf.concat([[0.0], tf.cumsum(tf.math.log1p(-self._decay * rates))], axis=0)

    def _quadrature(self, since: tf.Tensor, decays: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
        """Nodes u and weights W so that the sum over missed steps is sum_k W_k / (sqrt(v) + u_k), [U, K] each.

        The first W are of the sum that moves the weights, the second of the one that moves their average, if any. `since` [U]
        is the step that each row is current at; `decays` come from `_decays`.
        """
        config = self._config
        shrinking = config.beta_1 / math.sqrt(config.beta_2)
        count = math.ceil(math.log(_NEGLIGIBLE) / math.log(shrinking))
        ordinal = np.arange(1, count + 1)  # [S]
        step = since[:, None] + ordinal[None, :].astype(np.float32) - 1.0  # [U, S]
        happened = step < self._step
        rate, log_epsilon = self._terms(step)
        following = _at(decays, tf.minimum(step + 1.0, float(self._total)))
        after = _at(decays, self._step) - following  # [U, S]
        shrunk_rate = rate * (shrinking**ordinal).astype(np.float32)
        exponent = log_epsilon + (-0.5 * math.log(config.beta_2) * ordinal).astype(np.float32)
        exponent = tf.broadcast_to(exponent, tf.shape(step))  # [U, S], rising with the step

        last = tf.reduce_max(tf.where(happened, exponent, exponent[:, :1]), axis=1, keepdims=True)
        middle, half = (last + exponent[:, :1]) / 2.0, tf.maximum((last - exponent[:, :1]) / 2.0, 1e-6)  # [U, 1]
        scaled = tf.clip_by_value((exponent - middle) / half, -1.0, 1.0)
        polynomials = [tf.ones_like(scaled), scaled]  # Chebyshev's
        for _ in range(2, _NODES):
            polynomials.append(2.0 * scaled * polynomials[-1] - polynomials[-2])
        angles = (np.arange(_NODES) + 0.5) * math.pi / _NODES
        at_nodes = np.cos(np.outer(np.arange(_NODES), angles)) * (2.0 / _NODES)  # [polynomials, K]
        at_nodes[0] /= 2.0

        def weights(amount: tf.Tensor) -> tf.Tensor:
            some = tf.where(happened, amount, 0.0)
            moments = [some, *(some * polynomial for polynomial in polynomials[1:])]
            sums = [tf.reduce_sum(moment, axis=1) for moment in moments]
            return tf.matmul(tf.stack(sums, axis=1), at_nodes.astype(np.float32))

        nodes = tf.exp(middle + half * np.cos(angles).astype(np.float32))
        if self._moving is None:
            return nodes, weights(shrunk_rate * tf.exp(after)), None
        share = self._kept(self._moving, step, after, before=_at(decays, tf.minimum(step, float(self._total))) - following)
        return nodes, weights(shrunk_rate * tf.exp(after)), weights(shrunk_rate * share)

    def _terms(self, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Rate and logarithm of epsilon of steps of any shape, corrected for bias if configured."""
        config = self._config
        rate, log_epsilon = self._rate_at(step), tf.constant(math.log(config.epsilon), tf.float32)
        if not config.bias_correction:
            return rate, log_epsilon
        number = step + 1.0
        correction = tf.sqrt(1.0 - tf.pow(config.beta_2, number))
        return rate * correction / (1.0 - tf.pow(config.beta_1, number)), log_epsilon + tf.math.log(correction)

    def _kept(self, moving: MovingAverage, step: tf.Tensor, after: tf.Tensor, *, before: tf.Tensor) -> tf.Tensor:
        """[U, S] share of a step's move in the current average, from the log decay `after` it and `before` it (undone)."""
        at_step = tf.minimum(step, float(self._total))
        now, then = (moving.counted(s) + _at(self._beyond, s) for s in (self._step, at_step))
        faded = moving.faded(tf.maximum(self._step - step, 0.0))
        return tf.math.divide_no_nan(now * tf.exp(after) - faded * then * tf.exp(before), moving.counted(self._step))


def _summed(weights: tf.Tensor, nodes: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    """[U, D] sum_k W_k / (sqrt(v) + u_k)."""
    total = tf.zeros_like(root)
    for weight, node in zip(*(tf.unstack(columns[:, :, None], axis=1) for columns in (weights, nodes))):  # K times [U, 1] both
        total += weight / (root + node)
    return total


def _at(table: tf.Tensor | tf.Variable, step: tf.Tensor) -> tf.Tensor:
    """Looks up steps of any shape in a table by step (for decays: log of the cumulative decay before)."""
    return tf.gather(table, tf.cast(step, tf.int32))


def _rows_at(source: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """[U, D] and [N] to [N, D]; with the gradient of `tf.gather`, the host would wait for sizes from the device."""

    @with_gradient
    def gather(source: tf.Tensor) -> tuple[tf.Tensor, Gradient]:
        rows = tf.shape(source)[0]
        return tf.gather(source, places), lambda upstream: tf.math.unsorted_segment_sum(upstream, places, rows)

    return gather(source)
