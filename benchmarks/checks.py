"""Checks that two workers do the same work before their times are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

EXAMPLES = 8
LOSS_TOLERANCE = 1e-3
VECTORS_TOLERANCE = 1e-4


def mismatch(reference: Mapping[str, Any], answer: Mapping[str, Any], *, with_loss: bool) -> str | None:
    """Compares ours and another answer to {"check": k}; returns why they differ, else None.

    `with_loss` must be False for random weights, whose losses are unrelated.
    """
    ours, theirs = reference.get("ids"), answer.get("ids")
    if not isinstance(ours, list) or not isinstance(theirs, list) or len(ours) != len(theirs):
        return "no token ids for every example"
    for number, (mine, other) in enumerate(zip(ours, theirs)):
        if mine != other:
            return f"token ids of example {number} are {_excerpt(other)}, not {_excerpt(mine)}"
    if not _are_close(reference.get("vectors", []), answer.get("vectors", [])):
        return f"vectors differ by more than {VECTORS_TOLERANCE:g}"
    if not with_loss or reference.get("loss") is None:
        return None
    loss = answer.get("loss")
    if loss is None or not math.isfinite(loss) or abs(loss - reference["loss"]) > LOSS_TOLERANCE:
        return f"loss before training is {loss}, not {reference['loss']}"
    return None


def _are_close(ours: list[list[float]], theirs: list[list[float]]) -> bool:
    return np.shape(ours) == np.shape(theirs) and bool(np.allclose(ours, theirs, rtol=0.0, atol=VECTORS_TOLERANCE))


def _excerpt(ids: list[int]) -> str:
    return f"{len(ids)} ({', '.join(map(str, ids[:6]))}{', ...' * (len(ids) > 6)})"
