"""Probabilities of logits along the last axis.

In NumPy: scipy.special has the same bits, but takes a quarter of a second to import, and programs that only predict do without.
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
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities: npt.NDArray[Any] = shifted / shifted.sum(axis=-1, keepdims=True)
    return probabilities


def log_softmax(logits: Floats) -> npt.NDArray[Any]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities: npt.NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return log_probabilities


def sigmoid(logits: Floats) -> npt.NDArray[Any]:
    with np.errstate(over="ignore"):  # exp(-x) is infinite for a probability of 0
        probabilities: npt.NDArray[Any] = 1.0 / (1.0 + np.exp(-logits.astype(np.float64)))
    return probabilities.astype(logits.dtype)
