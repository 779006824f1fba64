"""Calibration: the temperature of logits, and how far probabilities are from the accuracy of decisions.

Shapes: N decisions, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_tf.metrics import probabilities
from bert_tf.metrics.probabilities import Floats, LabelledLogits

BINS = 15  # of the expected calibration error, as in Guo et al. (2017); fewer if they were small
_FEWEST = 40  # decisions per bin: an accuracy of 0.85 is uncertain by 0.06
EXTREME = 20.0  # largest temperature, and inverse of the smallest: logits that are never wrong have no optimum
_DRAWS = 200  # of decisions that calibrated predictions get right by chance
_TOLERANCE = 1e-7  # of the logarithm of a temperature


class Bin(NamedTuple):
    """Decisions of similar confidence."""

    confidence: float  # mean
    accuracy: float  # share of right decisions
    size: int  # number of decisions


class Calibration(NamedTuple):
    """Quality of probabilities; less is better."""

    ece: float  # expected calibration error, of bins with equally many decisions
    nll: float  # negative log-likelihood, nats per decision
    brier: float  # mean squared distance of the probabilities from 0 and 1, summed over the classes


def fit_temperature(labelled: LabelledLogits, *, smoothed: bool = False) -> float:
    """Returns the T that minimizes the negative log-likelihood of softmax(logits / T) (Guo et al., 2017, section 4.2).

    `smoothed` takes the true class for right in N + 1 of N + 2 decisions (Platt, 1999), where all N are right: T would be 0.
    """
    right = (len(labelled.labels) + 1) / (len(labelled.labels) + 2) if smoothed else 1.0
    from scipy import optimize

    def loss(log_temperature: float) -> float:
        part = scaled(labelled, math.exp(log_temperature))
        likelihood = right * _losses(part).mean()
        return float(likelihood + (1.0 - right) * _losses_of_others(part).mean()) if smoothed else float(likelihood)

    limit = math.log(EXTREME)
    return math.exp(optimize.minimize_scalar(loss, bounds=(-limit, limit), options={"xatol": _TOLERANCE}).x)


def scaled(labelled: LabelledLogits, temperature: float) -> LabelledLogits:
    return LabelledLogits(labelled.logits.astype(np.float64) / temperature, labelled.labels)


def measure(parts: Sequence[LabelledLogits]) -> Calibration:
    """Measures all decisions together; parts may differ in C."""
    losses = np.concatenate([_losses(part) for part in parts])
    distances = np.concatenate([_distances(part) for part in parts])
    return Calibration(error(bins(parts)), float(losses.mean()), float(distances.mean()))


def error(rows: Sequence[Bin]) -> float:
    """Returns the expected calibration error: the mean distance of confidence and accuracy."""
    return sum(row.size * abs(row.accuracy - row.confidence) for row in rows) / sum(row.size for row in rows)


def chance(parts: Sequence[LabelledLogits]) -> float:
    """Returns the mean calibration error that decisions of these confidences have by chance if they are calibrated."""
    confidence = np.sort(np.concatenate([probabilities.softmax(part.logits.astype(np.float64)).max(axis=-1) for part in parts]))
    random, rows = np.random.default_rng(0), np.array_split(confidence, _bin_count(len(confidence)))
    sizes, expected = np.array([len(row) for row in rows]), np.array([row.sum() for row in rows])
    starts = np.cumsum(sizes) - sizes

    def distance() -> float:
        """Of one draw of all decisions."""
        right = random.random(len(confidence)) < confidence
        return float(np.abs(np.add.reduceat(right, starts, dtype=np.int64) - expected).sum())

    return sum(distance() for _ in range(_DRAWS)) / (_DRAWS * len(confidence))


def bins(parts: Sequence[LabelledLogits], most: int | None = None) -> list[Bin]:
    """Divides decisions by confidence into bins of equally many, the points of a reliability diagram; `most` None: by size."""
    shares = [probabilities.softmax(part.logits.astype(np.float64)) for part in parts]
    confidence = np.concatenate([share.max(axis=-1) for share in shares])
    right = np.concatenate([share.argmax(axis=-1) == part.labels for share, part in zip(shares, parts)])
    order = np.argsort(confidence, kind="stable")
    rows = np.array_split(order, most or _bin_count(len(order)))
    return [Bin(float(confidence[row].mean()), float(right[row].mean()), len(row)) for row in rows]


def _bin_count(decisions: int) -> int:
    return max(1, min(BINS, decisions // _FEWEST))


def _losses(labelled: LabelledLogits) -> Floats:
    shares = probabilities.log_softmax(labelled.logits.astype(np.float64))
    picked: Floats = -shares[np.arange(len(shares)), labelled.labels]
    return picked


def _losses_of_others(labelled: LabelledLogits) -> Floats:
    """Returns [N] mean losses of the classes that are not true; options that a question lacks have the logit -inf."""
    losses = -probabilities.log_softmax(labelled.logits.astype(np.float64))
    real = np.isfinite(labelled.logits)
    true = losses[np.arange(len(losses)), labelled.labels]
    others: Floats = (np.where(real, losses, 0.0).sum(axis=-1) - true) / (real.sum(axis=-1) - 1)
    return others


def _distances(labelled: LabelledLogits) -> Floats:
    shares = probabilities.softmax(labelled.logits.astype(np.float64))
    hot = np.arange(shares.shape[1]) == labelled.labels[:, None]
    distances: Floats = np.square(shares - hot).sum(axis=-1)
    return distances
