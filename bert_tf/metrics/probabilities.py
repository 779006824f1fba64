"""Probabilities of logits along the last axis, with the bits of scipy.special.

Scipy takes a quarter of a second to import, so that only what needs its C code does.
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
    found: npt.NDArray[Any] = shifted / shifted.sum(axis=-1, keepdims=True)
    return found


def log_softmax(logits: Floats) -> npt.NDArray[Any]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: npt.NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def sigmoid(logits: Floats) -> npt.NDArray[Any]:
    from scipy import special

    found: npt.NDArray[Any] = special.expit(logits)
    return found
