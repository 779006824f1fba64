"""Confidence intervals of metrics, by the percentile bootstrap over examples (Efron, 1979).

A resample is how often it draws each distinct pair of label and prediction, so that a matrix product evaluates many
resamples at once. Shapes: R resamples, K distinct pairs, C classes or labels; D is nothing, or L where several labels may
apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_AT_A_TIME = 1 << 21  # draws that are held in memory together
# Draws of all resamples. Beyond 10,000 distinct pairs, as regression has, there are fewer resamples: seconds, not a minute. The
# interval is then so narrow that what the ends of fewer vary by is nothing.
_DRAWS = 10_000_000
_LEAST_RESAMPLES = 200
_NO_SPREAD = 1e-12  # of a variance that is 1 over all examples: rounding where a resample holds one number only


def confidence_intervals(
    names: Iterable[str],
    labels: Array,
    predictions: Array,
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> dict[str, tuple[float, float]]:
    """Returns where each metric lies in the middle `level` of resamples of the examples.

    It says how far the choice of examples moves a metric, not how far the seed of training does.

    Args:
      names: keys of `METRICS`.
      labels: [N] or [N, L].
      predictions: as many.
      seed: decides what is drawn.
      resamples: R; above 10,000 distinct pairs of label and prediction fewer, at least 200.
      level: share of resamples between the ends.
    """
    both = np.column_stack([labels, predictions])
    distinct, counts = np.unique(both, axis=0, return_counts=True)
    labels, predictions = (half if labels.ndim == 2 else half[:, 0] for half in np.split(distinct, 2, axis=1))
    rng = np.random.default_rng(seed)
    values: dict[str, list[Floats]] = {name: [] for name in names}
    resamples = min(resamples, max(_LEAST_RESAMPLES, _DRAWS // len(counts)))
    at_a_time = max(1, _AT_A_TIME // len(counts))
    for start in range(0, resamples, at_a_time):
        size = min(at_a_time, resamples - start)
        draws = rng.multinomial(len(both), counts / len(both), size).astype(np.float64)  # [R, K]
        for name, of_draws in values.items():
            of_draws.append(STATISTICS[name](labels, predictions, draws))
    tails = [(1.0 - level) / 2, (1.0 + level) / 2]
    ends = {name: np.quantile(np.concatenate(of_draws), tails) for name, of_draws in values.items()}
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Returns the quotient, 0 where there is nothing to divide by."""
    quotient: Floats = np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)
    return quotient


def _accuracy(labels: Array, predictions: Array, draws: Floats) -> Floats:
    right = labels == predictions  # [K, D]
    share: Floats = draws @ (right if right.ndim == 1 else right.all(axis=-1)) / draws.sum(axis=-1)
    return share


def _counts(labels: Array, predictions: Array, draws: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns [R, C] how often each class is predicted rightly, is the label, and is predicted."""
    if labels.ndim == 1:
        classes = np.arange(max(labels.max(), predictions.max()) + 1)
        labels, predictions = labels[:, None] == classes, predictions[:, None] == classes  # [K, C]
    return draws @ (labels * predictions), draws @ labels, draws @ predictions


def _f1(labels: Array, predictions: Array, draws: Floats) -> Floats:
    right, actual, predicted = _counts((labels == 1)[:, None], (predictions == 1)[:, None], draws)  # [R, 1] each
    return _ratio(2 * right, actual + predicted)[:, 0]


def _macro_f1(labels: Array, predictions: Array, draws: Floats) -> Floats:
    right, actual, predicted = _counts(labels, predictions, draws)
    averaged = (actual + predicted > 0) | (labels.ndim == 2)  # [R, C]
    means: Floats = _ratio(2 * right, actual + predicted).mean(axis=-1, where=averaged)
    return means


def _micro_f1(labels: Array, predictions: Array, draws: Floats) -> Floats:
    right, actual, predicted = (counts.sum(axis=-1) for counts in _counts(labels, predictions, draws))
    return _ratio(2 * right, actual + predicted)


def _matthews_correlation(labels: Array, predictions: Array, draws: Floats) -> Floats:
    """R_K of Gorodkin (2004), for any number of classes."""
    right, actual, predicted = _counts(labels, predictions, draws)
    total = draws.sum(axis=-1)
    spreads = (total**2 - np.sum(actual**2, axis=-1)) * (total**2 - np.sum(predicted**2, axis=-1))
    return _ratio(total * right.sum(axis=-1) - np.sum(actual * predicted, axis=-1), np.sqrt(spreads))


def _pearson(labels: Array, predictions: Array, draws: Floats) -> Floats:
    x, y = _standardized(labels), _standardized(predictions)
    moments: Floats = draws @ np.column_stack([x, y, x * x, y * y, x * y]) / draws.sum(axis=-1, keepdims=True)
    mean_x, mean_y, xx, yy, xy = moments.T  # [R] each
    var_x, var_y = xx - mean_x**2, yy - mean_y**2
    spread = np.where((var_x > _NO_SPREAD) & (var_y > _NO_SPREAD), var_x * var_y, 0.0)
    return _ratio(xy - mean_x * mean_y, np.sqrt(spread))


def _standardized(numbers: Array) -> Floats:
    numbers = numbers.astype(np.float64)
    centred: Floats = numbers - numbers.mean()
    return centred / (centred.std() or 1.0)


def _spearman(labels: Array, predictions: Array, draws: Floats) -> Floats:
    x, y = _centred_ranks(labels, draws), _centred_ranks(predictions, draws)
    cov, var_x, var_y = (np.einsum("rk,rk,rk->r", draws, a, b) for a, b in ((x, y), (x, x), (y, y)))
    return _ratio(cov, np.sqrt(var_x * var_y))


def _centred_ranks(numbers: Array, draws: Floats) -> Floats:
    """Returns the [R, K] rank of each number among those drawn, less the mean rank; equal ones share the mean of theirs."""
    order = np.argsort(numbers, kind="stable")
    changes = np.diff(numbers[order], prepend=np.nan) != 0  # [K] whether another number begins here
    ties: Floats = np.add.reduceat(draws[:, order], np.flatnonzero(changes), axis=1)  # [R, U] draws of each number
    ranks = np.cumsum(ties, axis=1) - ties / 2 - draws.sum(axis=1, keepdims=True) / 2
    number_of = np.empty(len(numbers), np.int64)
    number_of[order] = np.cumsum(changes) - 1
    spread: Floats = ranks[:, number_of]
    return spread


# What each metric is in every resample: [K, D] labels, [K, D] predictions and [R, K] draws to [R].
STATISTICS: dict[str, Callable[[Array, Array, Floats], Floats]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "macro_f1": _macro_f1,
    "micro_f1": _micro_f1,
    "matthews_correlation": _matthews_correlation,
    "pearson": _pearson,
    "spearman": _spearman,
    "subset_accuracy": _accuracy,
}
