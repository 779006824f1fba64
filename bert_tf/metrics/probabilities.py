"""Probabilities of logits along the last axis, by scipy.

Scipy is imported on first use: it takes a sixth of a second, which would delay training.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]


class LabelledLogits(NamedTuple):
    """Logits that share a temperature, and their true classes."""

    logits: Floats  # [N decisions, C classes]
    labels: npt.NDArray[np.integer[Any]]  # [N] classes


def softmax(logits: Floats) -> npt.NDArray[Any]:
    from scipy import special

    found: npt.NDArray[Any] = special.softmax(logits, axis=-1)
    return found


def log_softmax(logits: Floats) -> npt.NDArray[Any]:
    from scipy import special

    found: npt.NDArray[Any] = special.log_softmax(logits, axis=-1)
    return found


def sigmoid(logits: Floats) -> npt.NDArray[Any]:
    from scipy import special

    found: npt.NDArray[Any] = special.expit(logits)
    return found
