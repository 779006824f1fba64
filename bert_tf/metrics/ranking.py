"""Comparison of results: the best of several."""

from __future__ import annotations

import math

_COSTS = {"loss", "perplexity"}  # words in the names of results where less is better


def is_cost(name: str) -> bool:
    """Whether lower is better: eval_loss, perplexity, masked_lm_loss_512."""
    return not _COSTS.isdisjoint(name.split("_"))


def rank(value: float, loss: float | None) -> tuple[float, float]:
    """Sort key, best last: by metric, then by lower loss; None, for an unknown or NaN loss, is worst."""
    return value, -math.inf if loss is None else -loss
