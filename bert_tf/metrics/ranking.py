"""Comparison of results: the best of several."""

from __future__ import annotations

import math

_COSTS = {"loss", "perplexity"}  # words in the name of a result of which less is better


def is_cost(name: str) -> bool:
    """Whether less is better of a result: eval_loss, perplexity, masked_lm_loss_512."""
    return not _COSTS.isdisjoint(name.split("_"))


def rank(value: float, loss: float | None) -> tuple[float, float]:
    """Returns what results are sorted by, the best last: by a metric, and where that is equal by less loss.

    Args:
      value: of the metric.
      loss: mean over examples; None where it is unknown or not a number, which is the worst.
    """
    return value, -math.inf if loss is None else -loss
