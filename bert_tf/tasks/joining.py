"""Predictions of parts of a split, which were computed apart, as those of the split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def joined(parts: Sequence[Any]) -> Any:
    """Returns predictions of some examples after those of others, whatever a family makes of them.

    Args:
      parts: of `Family.predictions`, one at least: arrays with an axis of examples, lists, named tuples of these, or objects
        whose class has `joined`.
    """
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if hasattr(first, "joined"):
        return type(first).joined(parts)
    if hasattr(first, "_fields"):
        return type(first)(*map(joined, zip(*parts)))
    return [one for part in parts for one in part]
