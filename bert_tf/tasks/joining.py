"""Joins predictions of parts of a split that were computed separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def joined(parts: Sequence[Any]) -> Any:
    """Joins `Family.predictions`: arrays (by example), lists, named tuples of these, or objects with `joined`."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if hasattr(first, "joined"):
        return type(first).joined(parts)
    if hasattr(first, "_fields"):
        return type(first)(*map(joined, zip(*parts)))
    return [one for part in parts for one in part]
