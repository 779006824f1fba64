"""Checks a library against TensorFlow's arithmetic in a subprocess: `echo LIBRARY | python -m bert_tf.native.check`.

It reads the library's path when TensorFlow is imported, so that both can be made ready at the same time.
Tests each operation and its gradient on small random inputs; a wrong one ends the process with a line that names it.

Shapes: N rows of tokens, D width, E width of the feed-forward layer; M rows of queries, B sequences, H heads, Q queries and T
tokens of the longest sequence, K = D / H.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.native import ops

tf1 = tf.compat.v1

_Array = np.ndarray[Any, Any]
_Tensors = Sequence[tf.Tensor]

# Largest difference, relative to the largest number, or to 1 where that is less.
_TOLERANCE = {tf.float32: 2e-5, tf.bfloat16: 2e-2}
_TOKENS = (17, 64, 1, 33, 70)  # of each sequence: B = 5
_FEW = (17, 70)
_HEADS, _HEAD = 3, 20
_WIDTH = _HEADS * _HEAD
_WINDOW = 24  # tokens
_DROPPED = 6554
_SCALE = 65536 / (65536 - _DROPPED)
_EPSILON = 1e-12


class WrongError(Exception):
    """An operation differs from TensorFlow."""


class _Case(NamedTuple):
    """An operation and its reference in TensorFlow."""

    name: str  # for messages
    inputs: Sequence[_Array]  # activations first
    activations: int  # number of inputs that are activations
    kernel: Callable[..., tf.Tensor]  # takes activations in the checked type
    reference: Callable[..., tf.Tensor]  # takes inputs in float64


def main(library: str) -> None:
    ops.load(library)
    try:
        for dtype in ops.DTYPES:
            check(dtype)
    except WrongError as error:
        sys.exit(str(error))


def check(dtype: tf.DType) -> None:
    random = np.random.default_rng(0)
    with tf.Graph().as_default(), tf1.Session() as session:
        for case in (*_product(random), *_low_rank(random), *_gelu(random), *_norm(random), *_attention(random)):
            _check_case(case, dtype, session)
        _check_kept(session)
        _check_norm(random, session)
        _check_update(random, session)
        _check_made_current(random, session)


def _check_case(case: _Case, dtype: tf.DType, session: tf1.Session) -> None:
    inputs = [tf.cast(tf.constant(x), dtype if index < case.activations else tf.float32) for index, x in enumerate(case.inputs)]
    ours, of_ours = _with_gradients(case.kernel, inputs, dtype)
    exact, of_exact = _with_gradients(case.reference, [tf.cast(x, tf.float64) for x in inputs], dtype)
    _compare(f"{case.name} in {dtype.name}", [ours], [exact], session, _TOLERANCE[dtype])
    _compare(f"the gradient of {case.name} in {dtype.name}", of_ours, of_exact, session, _TOLERANCE[dtype])


def _with_gradients(function: Callable[..., tf.Tensor], inputs: _Tensors, dtype: tf.DType) -> tuple[tf.Tensor, list[tf.Tensor]]:
    output = function(*inputs)
    upstream = tf.cast(tf.constant(np.random.default_rng(1).normal(size=output.shape.as_list())), dtype)
    return output, tf.gradients(output, list(inputs), tf.cast(upstream, output.dtype))


def _compare(
    what: str, computed: _Tensors, expected: _Tensors, session: tf1.Session, tolerance: float = _TOLERANCE[tf.float32]
) -> None:
    """Compares related arrays together: exact zeros, such as the gradient of a key's bias, have errors too."""
    pairs = session.run([[tf.cast(x, tf.float64) for x in pair] for pair in zip(computed, expected)])
    if [ours.shape for ours, _ in pairs] != [exact.shape for _, exact in pairs]:
        raise WrongError(f"{what} has another shape")
    difference = max(np.abs(ours - exact).max() for ours, exact in pairs)
    if not difference <= tolerance * max(1.0, *(np.abs(exact).max() for _, exact in pairs)):
        raise WrongError(f"{what} is off by {difference:.2g}")


def _product(random: np.random.Generator) -> Iterator[_Case]:
    """Weights [D, E] that become wider and narrower; neither size is a multiple of the 8 that are transposed together."""
    for shape in ((45, 83), (83, 45)):
        inputs = [random.normal(size=(50, shape[0])), random.normal(size=shape) * 0.1]
        yield _Case(f"the product with {shape[0]} by {shape[1]} weights", inputs, 1, ops.product, tf.matmul)


def _low_rank(random: np.random.Generator) -> Iterator[_Case]:
    """Rows [N, D] times a matrix plus a product of [D, R] and [R, E]; no size is a multiple of a vector."""
    for width, wider, rank in ((45, 83, 3), (299, 45, 17)):
        shapes = [(50, width), (width, rank), (rank, wider), (width, wider)]
        *inputs, weights = (random.normal(size=shape) / math.sqrt(shape[-2]) for shape in shapes)
        kernel, reference = (functools.partial(function, weights=weights) for function in (_with_update, _plain_with_update))
        yield _Case(f"a product with an update of rank {rank}", inputs, 1, kernel, reference)


def _with_update(x: tf.Tensor, down: tf.Tensor, up: tf.Tensor, *, weights: _Array) -> tf.Tensor:
    return ops.plus_low_rank(lambda rows: ops.product(rows, tf.constant(weights, tf.float32)), x, down, up, scaling=1.5)


def _plain_with_update(x: tf.Tensor, down: tf.Tensor, up: tf.Tensor, *, weights: _Array) -> tf.Tensor:
    return tf.matmul(x, weights + 1.5 * tf.matmul(down, up))


def _gelu(random: np.random.Generator) -> Iterator[_Case]:
    inputs = [random.normal(size=(50, 100)) * 3, random.normal(size=100)]  # [N, E], [E]
    for exact, by in ((True, "the normal distribution"), (False, "tanh")):
        kernel = functools.partial(ops.gelu, exact=exact)
        yield _Case(f"GELU by {by}", inputs, 1, kernel, functools.partial(_plain_gelu, exact=exact))


def _plain_gelu(x: tf.Tensor, bias: tf.Tensor, *, exact: bool) -> tf.Tensor:
    return tf.nn.gelu(x + bias, approximate=not exact)


def _norm(random: np.random.Generator) -> Iterator[_Case]:
    rows, weights = random.normal(size=(2, 70, _WIDTH)), random.normal(size=(3, _WIDTH))  # x, residual; gamma, beta, bias
    mask = _kept(random, [rows[0].size])
    whole, plain = (functools.partial(function, mask=mask) for function in (_whole_norm, _plain_whole_norm))
    yield _Case("LayerNorm with bias, dropout and sum", [*rows, *weights], 2, whole, plain)
    yield _Case("LayerNorm", [rows[0], *weights[:2]], 1, functools.partial(ops.norm, epsilon=_EPSILON), _plain_norm)


def _whole_norm(
    x: tf.Tensor, residual: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, bias: tf.Tensor, *, mask: tf.Tensor
) -> tf.Tensor:
    return ops.norm(x, gamma, beta, _EPSILON, ops.Added(bias, mask, _SCALE, residual))


def _plain_whole_norm(
    x: tf.Tensor, residual: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, bias: tf.Tensor, *, mask: tf.Tensor
) -> tf.Tensor:
    factors = tf.reshape(tf.cast(mask, x.dtype), tf.shape(x)) * _SCALE
    return _plain_norm((x + bias) * factors + residual, gamma, beta)


def _plain_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tf.Tensor:
    centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    return centered * tf.math.rsqrt(tf.reduce_mean(centered**2, axis=-1, keepdims=True) + _EPSILON) * gamma + beta


def _attention(random: np.random.Generator) -> Iterator[_Case]:
    ones = (1,) * len(_TOKENS)
    cases = (
        ("attention with dropout", _Attention(_TOKENS, drops=True)),
        ("attention of one query", _Attention(ones)),
        ("attention within a window", _Attention(_TOKENS, drops=True, window=_WINDOW)),
        ("attention by distances", _Attention(_FEW, _FEW, drops=True, vectors=2, numbers=1)),
        ("attention of one query by distances", _Attention(ones[: len(_FEW)], _FEW, vectors=2, numbers=1)),
    )
    for name, case in cases:
        queries, keys, distances = case.queries, case.keys, 2 * max(case.keys) + 3  # of two more tokens than the longest has
        kept = _kept(random, [len(keys), _HEADS, max(queries), max(keys)]) if case.drops else None
        hidden = np.where(random.random(sum(keys)) < 0.1, -10000.0, 0.0)
        rows = [random.normal(size=(sum(counts), _WIDTH)) for counts in (queries, keys, keys)]
        vectors = random.normal(size=(case.vectors, distances, _WIDTH))
        others = [*random.normal(size=(3, _WIDTH)), *random.normal(size=(case.numbers, _HEADS, distances))]
        sequences = _Sequences(case, hidden, kept)
        yield _Case(name, [*rows, *vectors, *others], 3 + case.vectors, sequences.own, sequences.reference)


class _Attention(NamedTuple):
    """What attention is told."""

    queries: tuple[int, ...]  # of each sequence
    keys: tuple[int, ...] = _TOKENS
    drops: bool = False
    window: int = 0
    vectors: int = 0  # tensors of distances
    numbers: int = 0


class _Sequences(NamedTuple):
    """Attention of queries, keys and values, [M, D], [N, D] and [N, D], vectors of distances, biases [D], and numbers."""

    case: _Attention
    hidden: _Array  # [N], added to the scores of a key
    kept: tf.Tensor | None  # [B, H, Q, T] weights that dropout keeps, or None

    def _parts(self, inputs: _Tensors) -> tuple[_Tensors, _Tensors, _Tensors, _Tensors]:
        """Rows, vectors, biases and numbers."""
        behind = 3 + self.case.vectors
        return inputs[:3], inputs[3:behind], inputs[behind : behind + 3], inputs[behind + 3 :]

    def own(self, *inputs: tf.Tensor) -> tf.Tensor:
        rows, vectors, biases, numbers = self._parts(inputs)
        starts = [tf.constant([0, *np.cumsum(counts)], tf.int32) for counts in (self.case.queries, self.case.keys)]
        hidden, scale = tf.constant(self.hidden, tf.float32), 1.0 if self.kept is None else _SCALE
        given = ops.Distances(vectors, numbers)
        return ops.attention(
            rows, biases, hidden, starts, self.kept, heads=_HEADS, scale=scale, window=self.case.window, distances=given
        )

    def reference(self, *inputs: tf.Tensor) -> tf.Tensor:
        rows, vectors, biases, numbers = self._parts(inputs)
        rows = [x + bias for x, bias in zip(rows, biases)]
        vectors = [_in_heads(x + bias) for x, bias in zip(vectors, biases)]
        scale = (_HEAD * (1 + len(vectors))) ** -0.5
        first_query, first_key, contexts = 0, 0, []
        for number, (queries, keys) in enumerate(zip(self.case.queries, self.case.keys)):
            own = slice(first_key, first_key + keys)
            parts = rows[0][first_query : first_query + queries], rows[1][own], rows[2][own]
            kept = None if self.kept is None else self.kept[number, :, :queries, :keys]
            apart = np.arange(queries)[:, None] - np.arange(keys)  # [Q, T]
            far = np.abs(apart) > self.case.window / 2 if self.case.window else False
            hidden = np.where(far, -10000.0, self.hidden[own]) if self.case.window else self.hidden[own]
            query, key, value = (_in_heads(part) for part in parts)
            places = apart + max(self.case.keys) + 1
            products = tf.matmul(query, key, transpose_b=True) + _by_distance(query, key, vectors, places)
            scores = products * scale + sum(tf.gather(some, places, axis=1) for some in numbers)
            contexts.append(_attend(scores + hidden, value, kept))
            first_query, first_key = first_query + queries, first_key + keys
        return tf.concat(contexts, axis=0)


def _by_distance(query: tf.Tensor, key: tf.Tensor, vectors: _Tensors, places: _Array) -> tf.Tensor | float:
    """Products of a query [H, Q, K] and of a key [H, T, K] with vectors at the place [Q, T] of their distance: [H, Q, T]."""
    if not vectors:
        return 0.0
    as_queries, as_keys = (tf.gather(some, places, axis=1) for some in vectors)  # [H, Q, T, K]
    return tf.einsum("hqk,hqtk->hqt", query, as_keys) + tf.einsum("htk,hqtk->hqt", key, as_queries)


def _in_heads(rows: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tf.reshape(rows, [-1, _HEADS, _HEAD]), [1, 0, 2])


def _attend(scores: tf.Tensor, value: tf.Tensor, kept: tf.Tensor | None) -> tf.Tensor:
    weights = tf.nn.softmax(scores)  # [H, Q, T]
    if kept is not None:
        weights *= tf.cast(kept, weights.dtype) * _SCALE
    return tf.reshape(tf.transpose(tf.matmul(weights, value), [1, 0, 2]), [-1, _WIDTH])


def _kept(random: np.random.Generator, shape: Sequence[int]) -> tf.Tensor:
    return tf.constant((random.random(shape) >= 0.1).astype(np.uint8))


def _check_kept(session: tf1.Session) -> None:
    size, seed = 10007, tf.constant([7, 123456789012], tf.int64)
    bits = tf.random.stateless_uniform([-(-size // 4)], seed, minval=None, maxval=None, dtype=tf.uint64)
    expected = tf.cast(tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size], tf.int32) >= _DROPPED
    _compare("the mask of dropout", [ops.kept(seed, _DROPPED, tf.constant(size, tf.int64))], [expected], session, 0.0)
    for queries in (_TOKENS, (1,) * len(_TOKENS)):  # a unit of random numbers may hold several rows
        shape = [len(_TOKENS), _HEADS, max(queries), max(_TOKENS) + 5]
        whole = tf.reshape(ops.kept(seed, _DROPPED, tf.constant(math.prod(shape), tf.int64)), shape)
        starts = [tf.constant([0, *np.cumsum(counts)], tf.int32) for counts in (queries, _TOKENS)]
        of_rows = ops.kept_weights(seed, _DROPPED, tf.constant(shape, tf.int32), starts)
        computed, drawn = ([mask[i, :, :q, :t] for i, (q, t) in enumerate(zip(queries, _TOKENS))] for mask in (of_rows, whole))
        _compare("the mask of attention", computed, drawn, session, 0.0)


def _check_norm(random: np.random.Generator, session: tf1.Session) -> None:
    gradients = [tf.cast(random.normal(size=size), dtype) for size in (40000, 3) for dtype in ops.DTYPES]
    expected = tf.linalg.global_norm([tf.cast(gradient, tf.float64) for gradient in gradients])
    _compare("the norm of gradients", [ops.global_norm(gradients)], [expected], session)


class _Update(NamedTuple):
    """Numeric inputs of `ops.adamw`."""

    rate: float = 0.01
    clip: float = 0.7
    correction: float = 0.5
    epsilon: float = 1e-6
    share_1: float = 0.1
    share_2: float = 0.001
    factors: tuple[float, ...] = (1.0, 0.5)
    decays: tuple[float, ...] = (0.01, 0.0)


def _check_update(random: np.random.Generator, session: tf1.Session) -> None:
    shapes = ([170, 100], [7])
    gradients = [tf.cast(random.normal(size=shape), dtype) for shape, dtype in zip(shapes, reversed(ops.DTYPES))]
    before = [[np.abs(random.normal(size=shape)) for shape in shapes] for _ in range(3)]  # weights, first and second moments
    variables = [[_variable(value) for value in part] for part in before]
    session.run([variable.initializer for part in variables for variable in part])
    weights, first, second = ([variable.handle for variable in part] for part in variables)
    session.run(ops.adamw(weights=weights, first=first, second=second, gradients=gradients, **_Update()._asdict()))
    for index, gradient in enumerate(gradients):
        expected = _updated(tf.cast(gradient, tf.float64), [part[index] for part in before], index, _Update())
        _compare("the update of AdamW", [part[index].read_value() for part in variables], expected, session)


def _variable(value: _Array) -> tf.Variable:
    return tf1.get_variable(f"v{len(tf1.global_variables())}", value.shape, initializer=tf1.constant_initializer(value))


def _updated(gradient: tf.Tensor, before: Sequence[_Array], index: int, update: _Update) -> _Tensors:
    rate, clipped = update.rate * update.factors[index], gradient * update.clip
    weights, first, second = (tf.cast(tf.constant(x, tf.float32), tf.float64) for x in before)
    first += (clipped - first) * update.share_1
    second += (clipped**2 - second) * update.share_2
    step = rate * update.correction * first / (tf.sqrt(second) + update.epsilon)
    return weights * (1.0 - rate * update.decays[index]) - step, first, second


def _check_made_current(random: np.random.Generator, session: tf1.Session) -> None:
    """Rows that missed no, few and many steps, beside one update for each step."""
    now, missed, decay, epsilon = 400, (0, 1, 5, 9, 300, 400), 0.01, 0.3
    rates = np.linspace(0.1, 0.0, now + 50)
    log_decay = np.log(1.0 - decay * rates)  # logarithm of what decay leaves in a step
    before = [np.abs(random.normal(size=(len(missed), _WIDTH))) for _ in range(3)]  # weights, first and second moments
    variables = [_variable(value) for value in (*before, np.subtract(now, missed, dtype=np.float64))]
    session.run([variable.initializer for variable in variables])
    computed = ops.made_current(
        **{name: variable.handle for name, variable in zip(("table", "first", "second", "current_at"), variables)},
        ids=tf.range(len(missed)),
        rates=tf.constant(rates, tf.float32),
        epsilons=tf.fill([len(rates)], np.float32(np.log(epsilon))),
        decays=tf.constant([0.0, *np.cumsum(log_decay)], tf.float32),
        step=float(now),
        beta_1=0.9,
        beta_2=0.999,
    )
    weights, first, second = before
    for row, count in enumerate(missed):
        for step in range(now - count, now):
            first[row], second[row] = first[row] * 0.9, second[row] * 0.999
            moved = rates[step] * first[row] / (np.sqrt(second[row]) + epsilon)
            weights[row] = weights[row] * (1.0 - decay * rates[step]) - moved
    _compare("the update of rows that missed steps", computed, [tf.constant(part) for part in before], session)


if __name__ == "__main__":
    path = sys.stdin.readline().rstrip()
    sys.stderr.write("begins\n")  # what fails before is not the library
    main(path)
