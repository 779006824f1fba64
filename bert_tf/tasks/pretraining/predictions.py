"""What a model says of masked words and of pairs, and the words that it gets most confidently wrong.

Shapes: N rows, S masked places of all rows, K words that are put out of each place.
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
    """Outputs of the head beside the rows that they are of.

    Attributes:
      features: N rows.
      log_probs: [S] of the word that was masked, in nats.
      best_ids: [S, K] the likeliest words, the best first.
      best_log_probs: [S, K] of these.
      next_logits: [N, 2] that the second text is the next, and that it is a random one; None where that is not learned.
    """

    features: Features
    log_probs: Floats
    best_ids: Array
    best_log_probs: Array
    next_logits: Array | None

    @property
    def true_ids(self) -> Array:
        """[S] the words that were masked."""
        return self.features.targets[IDS.name]

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """[S] whether the likeliest word is the one."""
        found: npt.NDArray[np.bool_] = self.best_ids[:, 0] == self.true_ids
        return found

    @functools.cached_property
    def rows(self) -> Ints:
        """[S] the row of each place."""
        return np.repeat(np.arange(len(self.features)), self.features.columns()["slots"])

    @functools.cached_property
    def seen_ids(self) -> Array:
        """[S] what the model read at each place."""
        starts = np.cumsum(self.features.lengths, dtype=np.int64) - self.features.lengths
        seen: Array = self.features.token_ids[starts[self.rows] + self.features.targets[POSITIONS.name]]
        return seen

    @property
    def documents(self) -> Array:
        """[N] the document of each row."""
        found: Array = self.features.targets.get(DOCUMENTS.name, np.arange(len(self.features)))
        return found


def of_outputs(outputs: Outputs, features: Features) -> MaskedPredictions:
    """Returns what outputs of the head say of rows.

    Args:
      outputs: of the head.
      features: N rows.
    """
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
    """Returns the masked words for which the model is surest of another, each in its text.

    Args:
      predictions: of the rows.
      examples: the rows before they were masked.
      vocabulary: of the words.
      kept: how many at most.
    """
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
