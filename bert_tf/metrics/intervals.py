"""Confidence intervals: of shares and F1 by Wilson (1927), of others by resampled examples, BCa (Efron, 1987).

They measure how far the choice of examples moves a metric, not the seed of training.

Shapes: N examples, G groups of them, K sums that a metric is computed from, R resamples, L classes or labels.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.metrics.values import METRICS, Array

Floats = npt.NDArray[np.float64]
# Per metric: how to compute it, from [R, K] sums to [R] values, and [N, K] sums by example.
Sums = Mapping[str, tuple[Callable[[Floats], Floats], npt.NDArray[Any]]]
Statistic = Callable[[Floats], Floats]  # from the counts of drawn groups [R, G] to values [R] of a metric
OfCounts = Callable[[Floats, Floats, Floats], Floats]  # from counts of right, true and predicted [R, L] to [R]
Below = Callable[[Floats], Floats]  # see `_below`

# More examples are put into this many random groups, which are drawn instead: a metric varies as much, and the cost of BCa's
# jackknife is quadratic in their number. The width of the interval becomes uncertain by 2 %.
_GROUPS = 1000
_NUMBERS = 50_000  # drawn at a time: they stay in the cache
_SEED, _RESAMPLES, _LEVEL = 0, 2000, 0.95
_ROUNDING = 1e-12  # a variance below, relative to that of all examples, is one of equal numbers


def confidence_intervals(
    names: Iterable[str],
    labels: Array,
    predictions: Array,
    *,
    seed: int = _SEED,
    resamples: int = _RESAMPLES,
    level: float = _LEVEL,
) -> dict[str, tuple[float, float]]:
    """Returns intervals covering each metric's population value with probability `level`; labels [N] or [N, L].

    A metric has none if resamples do not vary, as when all predictions are right or only one class is predicted, or if
    there is only one example. With 2000 resamples the ends vary by some hundredths of the width.
    """
    intervals = {}
    for name in names:
        right = _right(name, labels, predictions)
        if right is not None:
            intervals[name] = _of_share(right, level)
        elif name == "f1":
            intervals[name] = _of_f1(labels == 1, predictions == 1, level)
        elif len(labels) > 1:
            group_of = _grouped(len(labels), seed)
            statistic = _STATISTICS.get(name, _of_rows(METRICS[name]))(labels, predictions, group_of)
            intervals[name] = _of_resamples(statistic, int(group_of.max()) + 1, resamples, level, seed)
    return {name: ends for name, ends in intervals.items() if np.isfinite(ends).all()}


def of_sums(
    metric: Callable[[Floats], Floats],
    sums: npt.NDArray[Any],
    group_of: Array | None = None,
) -> tuple[float, float] | None:
    """Returns the interval of a metric ([R, K] sums to [R] values) from [N, K] sums; None if resamples do not vary.

    group_of [N] is the group of each example if examples are alike within groups, such as questions about one text:
    whole groups are resampled. None if examples are independent.
    """
    groups = len(sums) if group_of is None else int(group_of.max()) + 1
    if groups < 2:
        return None
    drawn = _grouped(groups, _SEED) if group_of is None else _grouped(groups, _SEED)[group_of]
    of_drawn = _sums(sums.T, drawn)  # [G, K]
    ends = _of_resamples(lambda counts: metric(counts @ of_drawn), len(of_drawn), _RESAMPLES, _LEVEL, _SEED)
    return ends if np.isfinite(ends).all() else None


def metrics_of_sums(sums: Sums) -> dict[str, float]:
    return {name: float(metric(of.sum(axis=0, keepdims=True).astype(float))[0]) for name, (metric, of) in sums.items()}


def of_all_sums(sums: Sums, group_of: Array | None = None) -> dict[str, tuple[float, float]]:
    """Returns the intervals of metrics whose resamples vary, see `of_sums`."""
    intervals = {name: of_sums(metric, of, group_of) for name, (metric, of) in sums.items()}
    return {name: ends for name, ends in intervals.items() if ends is not None}


def of_mean(values: Floats, group_of: Array | None = None) -> tuple[float, float] | None:
    of_each = np.stack([np.ones(len(values)), values], axis=1)
    return of_sums(lambda sums: _divided(sums[:, 1], sums[:, 0]), of_each, group_of)


def _right(name: str, labels: Array, predictions: Array) -> Array | None:
    """Returns [N] whether each example is right, for metrics that are a share of right examples; None for others."""
    if name in ("accuracy", "subset_accuracy", "micro_f1") and labels.ndim == 1:
        return np.asarray(labels == predictions)
    return np.all(labels == predictions, axis=-1) if name == "subset_accuracy" else None


def _of_share(right: Array, level: float) -> tuple[float, float]:
    from scipy.stats import binomtest

    low, high = binomtest(int(right.sum()), len(right)).proportion_ci(level, method="wilson")
    return float(low), float(high)


def _of_f1(actual: Array, predicted: Array, level: float) -> tuple[float, float]:
    """Returns the interval of a class's F1, 2 J / (1 + J), from that of J; nan if the class never occurs.

    J is the share of right answers among the examples that are of the class, or predicted so. BCa has no ends if it is
    1. `actual` and `predicted`: [N] whether an example is of the class, or predicted so.
    """
    either = actual | predicted
    if not either.any():
        return float("nan"), float("nan")
    low, high = _of_share((actual & predicted)[either], level)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _grouped(examples: int, seed: int) -> npt.NDArray[np.int64]:
    """Returns [N] the group of each example: its own if there are few."""
    if examples <= _GROUPS:
        return np.arange(examples)
    return np.random.default_rng(seed).permutation(examples) % _GROUPS


def _of_resamples(statistic: Statistic, groups: int, resamples: int, level: float, seed: int) -> tuple[float, float]:
    """Returns the ends by BCa; nan if undefined."""
    from scipy.stats import bootstrap

    def of_drawn(drawn: npt.NDArray[np.int64], axis: int) -> Floats:
        del axis  # the last
        rows = drawn.reshape(-1, drawn.shape[-1])
        cells = rows + np.arange(0, len(rows) * groups, groups)[:, None]
        counts = np.bincount(cells.ravel(), minlength=len(rows) * groups).reshape(-1, groups)  # [R, G] of group numbers
        return statistic(counts.astype(np.float64)).reshape(drawn.shape[:-1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about undefined ends
        low, high = bootstrap(
            (np.arange(groups),),
            of_drawn,
            vectorized=True,
            n_resamples=resamples,
            batch=max(1, _NUMBERS // groups),
            confidence_level=level,
            random_state=np.random.default_rng(seed),
        ).confidence_interval
    return float(low), float(high)


def _sums(columns: Iterable[Array], group_of: Array) -> Floats:
    """Returns [G, K] the sum over each group of K columns of [N]."""
    return np.stack([np.bincount(group_of, weights=column) for column in columns], axis=1)


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _of_classes(metric: OfCounts, labels: Array, predictions: Array, group_of: Array) -> Statistic:
    """Statistic of a metric of the right, true and predicted counts of each class."""
    pairs = _pairs(labels, predictions)
    sums = _sums((column for actual, predicted in pairs for column in (actual & predicted, actual, predicted)), group_of)

    def statistic(counts: Floats) -> Floats:
        right, actual, predicted = (counts @ sums).reshape(len(counts), -1, 3).transpose(2, 0, 1)
        return metric(right, actual, predicted)

    return statistic


def _pairs(labels: Array, predictions: Array) -> Iterator[tuple[Array, Array]]:
    """Yields two [N] for each class: whether it is true, and whether it is predicted."""
    if labels.ndim == 2:
        yield from zip(labels.T > 0, predictions.T > 0)
    else:
        for number in range(max(2, labels.max() + 1, predictions.max() + 1)):
            yield labels == number, predictions == number


def _macro_f1(labels: Array, predictions: Array, group_of: Array) -> Statistic:
    """For classes, only those in the resample count; for multi-label, all."""

    def metric(right: Floats, actual: Floats, predicted: Floats) -> Floats:
        counted = (actual + predicted > 0).astype(float) if labels.ndim == 1 else np.ones_like(actual)
        f1 = _divided(2 * right, actual + predicted)
        return _divided(f1.sum(axis=-1), counted.sum(axis=-1))

    return _of_classes(metric, labels, predictions, group_of)


def _micro_f1(right: Floats, actual: Floats, predicted: Floats) -> Floats:
    return _divided(2 * right.sum(axis=-1), (actual + predicted).sum(axis=-1))


def _matthews(right: Floats, actual: Floats, predicted: Floats) -> Floats:
    """For any number of classes (Gorodkin, 2004)."""
    examples = actual.sum(axis=-1)
    covariance = right.sum(axis=-1) * examples - (actual * predicted).sum(axis=-1)
    spreads = [examples**2 - (side**2).sum(axis=-1) for side in (actual, predicted)]
    return _divided(covariance, np.sqrt(spreads[0] * spreads[1]))


def _pearson(labels: Array, predictions: Array, group_of: Array) -> Statistic:
    x, y = ((side - side.mean()) / (side.std() or 1.0) for side in (labels.astype(float), predictions.astype(float)))
    return _of_moments(group_of, xy=x * y, xx=x * x, yy=y * y, x=x, y=y)


def _spearman(labels: Array, predictions: Array, group_of: Array) -> Statistic:
    """First-order: an example's own contribution to the moments of ranks, and its effect on the ranks of others."""
    below = [_below(side) for side in (labels, predictions)]
    x, y = (of(np.ones(len(labels))) for of in below)

    def added(a: Floats, b: Floats, below_a: Below, below_b: Below) -> Floats:
        moved: Floats = below_a(b) + below_b(a) + 2 * np.mean(a * b)
        return a * b - moved

    moments = {"xy": added(x, y, *below), "xx": added(x, x, *below[:1] * 2), "yy": added(y, y, *below[1:] * 2)}
    return _of_moments(group_of, **moments, x=np.zeros_like(x), y=np.zeros_like(y))


def _below(values: Array) -> Below:
    """Returns a function of [N] weights: (sum over lower values, ties by half, minus half the total) / N."""
    order = np.argsort(values, kind="stable")
    first, last = (
        np.searchsorted(values[order], values),
        np.searchsorted(values[order], values, side="right"),
    )  # [N] of equal ones

    def below(weights: Floats) -> Floats:
        reached = np.concatenate([[0.0], np.cumsum(weights[order])])
        sums: Floats = reached[first] + reached[last] - reached[-1]
        return sums / (2 * len(values))

    return below


def _of_moments(group_of: Array, **moments: Floats) -> Statistic:
    """Statistic of a correlation of two sides of scale about 1; 0 if one is constant."""
    sums = _sums([np.ones(len(group_of)), *(moments[name] for name in ("xy", "xx", "yy", "x", "y"))], group_of)

    def statistic(counts: Floats) -> Floats:
        examples, *drawn = (counts @ sums).T
        xy, xx, yy, x, y = (moment / examples for moment in drawn)
        variances = [np.where(variance > _ROUNDING, variance, 0.0) for variance in (xx - x**2, yy - y**2)]
        return np.clip(_divided(xy - x * y, np.sqrt(variances[0] * variances[1])), -1.0, 1.0)

    return statistic


def _of_rows(metric: Callable[[Array, Array], float]) -> Callable[[Array, Array, Array], Statistic]:
    """Statistic of a metric that is known by its function alone: it measures the rows of each resample."""

    def make_statistic(labels: Array, predictions: Array, group_of: Array) -> Statistic:
        def statistic(counts: Floats) -> Floats:
            drawn = (np.repeat(np.arange(len(labels)), of[group_of].astype(int)) for of in counts)
            return np.array([metric(labels[rows], predictions[rows]) for rows in drawn])

        return statistic

    return make_statistic


_STATISTICS: dict[str, Callable[[Array, Array, Array], Statistic]] = {
    "macro_f1": _macro_f1,
    "micro_f1": functools.partial(_of_classes, _micro_f1),
    "matthews_correlation": functools.partial(_of_classes, _matthews),
    "pearson": _pearson,
    "spearman": _spearman,
}
