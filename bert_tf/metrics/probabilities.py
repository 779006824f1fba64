"""Probabilities of logits, along their last axis; scipy computes them.

It is imported when it is needed: it takes a sixth of a second, for which training need not wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]


def softmax(logits: Floats) -> npt.NDArray[Any]:
    """Returns probabilities of classes that exclude each other."""
    from scipy import special

    found: npt.NDArray[Any] = special.softmax(logits, axis=-1)
    return found


def log_softmax(logits: Floats) -> npt.NDArray[Any]:
    """Returns logarithms of `softmax`."""
    from scipy import special

    found: npt.NDArray[Any] = special.log_softmax(logits, axis=-1)
    return found


def sigmoid(logits: Floats) -> npt.NDArray[Any]:
    """Returns probabilities of labels of which several may apply."""
    from scipy import special

    found: npt.NDArray[Any] = special.expit(logits)
    return found
