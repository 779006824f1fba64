"""Predictions of masked words and pairs, and the most confident mistakes.

Shapes: N rows, S masked positions of all rows, K predicted words per position.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import Array, Features
from bert_tf.fields import ROW, SLOT, Field
from bert_tf.tasks.base import Outputs
from bert_tf.tasks.pretraining.example import PretrainingExample, text_of
from bert_tf.tokenization.vocabulary import Vocabulary

POSITIONS, IDS = Field("masked_lm_positions", SLOT), Field("masked_lm_ids", SLOT)
NEXT_LABELS = Field("next_sentence_labels")
DOCUMENTS = Field("documents", ROW, in_batches=False)  # which a row is of; for intervals
FIELDS = (POSITIONS, IDS, NEXT_LABELS)

KEPT = 50  # mistakes of a split
_AROUND = 40  # pieces on each side of a masked word that are shown

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class MaskedPredictions:
    """Head outputs together with their rows."""

    features: Features  # N rows
    log_probs: Floats  # [S] of the masked word, in nats
    best_ids: Array  # [S, K] most likely words, best first
    best_log_probs: Array  # [S, K]
    next_logits: Array | None  # [N, 2] next, random; None without pairs

    @property
    def true_ids(self) -> Array:
        """[S] masked words."""
        return self.features.targets[IDS.name]

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """[S] whether the most likely word is correct."""
        found: npt.NDArray[np.bool_] = self.best_ids[:, 0] == self.true_ids
        return found

    @functools.cached_property
    def rows(self) -> Ints:
        """[S] row of each position."""
        return np.repeat(np.arange(len(self.features)), self.features.columns()["slots"])

    @functools.cached_property
    def seen_ids(self) -> Array:
        """[S] input at each position."""
        starts = np.cumsum(self.features.lengths, dtype=np.int64) - self.features.lengths
        seen: Array = self.features.token_ids[starts[self.rows] + self.features.targets[POSITIONS.name]]
        return seen

    @property
    def documents(self) -> Array:
        """[N] document of each row."""
        found: Array = self.features.targets.get(DOCUMENTS.name, np.arange(len(self.features)))
        return found


def of_outputs(outputs: Outputs, features: Features) -> MaskedPredictions:
    return MaskedPredictions(
        features,
        outputs["masked_lm_log_probs"].astype(np.float64),
        outputs["masked_lm_top_ids"],
        outputs["masked_lm_top_log_probs"],
        outputs.get("next_sentence_logits"),
    )


def most_confident_mistakes(
    predictions: MaskedPredictions, examples: Sequence[PretrainingExample], vocabulary: Vocabulary, *, kept: int = KEPT
) -> list[dict[str, Any]]:
    """Returns at most `kept` masked words with the most confident wrong prediction, each in its text."""
    sureness = np.where(predictions.right, -np.inf, predictions.best_log_probs[:, 0])
    places = np.argsort(-sureness, kind="stable")[: min(kept, int((~predictions.right).sum()))]
    return [_mistake(predictions, examples, vocabulary, place) for place in places.tolist()]


def _mistake(
    predictions: MaskedPredictions, examples: Sequence[PretrainingExample], vocabulary: Vocabulary, place: int
) -> dict[str, Any]:
    example = examples[int(predictions.rows[place])]
    at = int(predictions.features.targets[POSITIONS.name][place])
    first = max(at - _AROUND, 1)  # without [CLS]
    text, where = text_of(example.pieces[first : at + _AROUND])
    return {
        "id": example.guid,
        "text_a": text,
        "text_b": None,
        "label": vocabulary.name(int(predictions.true_ids[place])),
        "predicted": vocabulary.name(int(predictions.best_ids[place, 0])),
        "confidence": float(np.exp(predictions.best_log_probs[place, 0])),
        "error": None,
        "marks": [(*where[at - first], "label")],
    }
