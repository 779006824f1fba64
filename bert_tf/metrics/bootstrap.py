"""Confidence intervals of metrics, by the percentile bootstrap over examples (Efron, 1979)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bert_tf.metrics.values import METRICS, Array

# Examples of all resamples. A split of more than 20,000 has fewer resamples: seconds, not half a minute. Its interval is so
# narrow that what the ends of fewer vary by is nothing.
_DRAWS = 10_000_000
_LEAST_RESAMPLES = 200


def confidence_intervals(
    names: Iterable[str],
    labels: Array,
    predictions: Array,
    *,
    seed: int = 0,
    resamples: int = 500,
    level: float = 0.95,
) -> dict[str, tuple[float, float]]:
    """Returns where each metric lies in the middle `level` of resamples of the examples.

    It says how far the choice of examples moves a metric, not how far the seed of training does.

    Args:
      names: keys of `METRICS`.
      labels: [N] or [N, L].
      predictions: as many.
      seed: decides what is drawn.
      resamples: how many, by which the ends vary by some hundredths of the width; above 20,000 examples fewer, at least 200.
      level: share of resamples between the ends.
    """
    count = len(labels)
    rng = np.random.default_rng(seed)
    values: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(min(resamples, max(_LEAST_RESAMPLES, _DRAWS // count))):
        rows = rng.integers(count, size=count)
        for name, found in values.items():
            found.append(METRICS[name](labels[rows], predictions[rows]))
    tails = [(1.0 - level) / 2, (1.0 + level) / 2]
    ends = {name: np.quantile(found, tails) for name, found in values.items()}
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}
