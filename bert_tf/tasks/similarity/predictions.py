"""Predictions of pairs, as objects and as text. Shapes: E examples, D hidden size."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import numpy.typing as npt

from bert_tf.tasks.predictions import Id, names_of
from bert_tf.tasks.sentence.example import SentenceExample

Vectors = npt.NDArray[np.float32]  # [E, 2, D]
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one pair."""

    id: Id
    label: float  # score on the scale of the data
    cosine: Annotated[float, {"minimum": -1.001, "maximum": 1.001}]  # of the vectors of both texts, -1 to 1


COLUMNS = names_of(Prediction)


def directions(vectors: Vectors) -> Vectors:
    """Scales vectors [..., D] to length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32, copy=False)
    return scaled


def cosines(vectors: Vectors) -> Floats:
    """Returns the [E] cosines of pairs."""
    first, second = np.moveaxis(directions(vectors).astype(np.float64), 1, 0)
    found: Floats = (first * second).sum(axis=-1)
    return found


def listed(vectors: Vectors, examples: Sequence[SentenceExample], highest_score: float) -> list[Prediction]:
    found = cosines(vectors).tolist()
    return [Prediction(example.guid, cosine * highest_score, cosine) for example, cosine in zip(examples, found)]
