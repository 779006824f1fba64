"""Evaluation on held-out documents: masked words and sentence pairs.

Shapes: N rows, S masked positions of all rows, K sums that a metric is computed from, R resamples.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.pretrain.rows import DOCUMENTS, IDS, NEXT_LABELS, POSITIONS, PretrainingExample, text_of
from bert_tf.features.columns import Array, Features
from bert_tf.metrics import intervals, probabilities
from bert_tf.tasks.base import Outputs
from bert_tf.tasks.evaluation import Evaluation, Panel
from bert_tf.tokenization.vocabulary import Vocabulary

_KEPT = 50  # mistakes of a split
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
        is_right: npt.NDArray[np.bool_] = self.best_ids[:, 0] == self.true_ids
        return is_right

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
        numbers: Array = self.features.targets.get(DOCUMENTS.name, np.arange(len(self.features)))
        return numbers


def of_outputs(outputs: Outputs, features: Features) -> MaskedPredictions:
    return MaskedPredictions(
        features,
        outputs["masked_lm_log_probs"].astype(np.float64),
        outputs["masked_lm_top_ids"],
        outputs["masked_lm_top_log_probs"],
        outputs.get("next_sentence_logits"),
    )


def most_confident_mistakes(
    predictions: MaskedPredictions, examples: Sequence[PretrainingExample], vocabulary: Vocabulary
) -> list[dict[str, Any]]:
    """Returns masked words with the most confident wrong prediction, each in its text."""
    sureness = np.where(predictions.right, -np.inf, predictions.best_log_probs[:, 0])
    places = np.argsort(-sureness, kind="stable")[: min(_KEPT, int((~predictions.right).sum()))]
    return [_mistake(predictions, examples, vocabulary, slot) for slot in places.tolist()]


def _mistake(
    predictions: MaskedPredictions, examples: Sequence[PretrainingExample], vocabulary: Vocabulary, slot: int
) -> dict[str, Any]:
    example = examples[int(predictions.rows[slot])]
    at = int(predictions.features.targets[POSITIONS.name][slot])
    first = max(at - _AROUND, 1)  # without [CLS]
    text, where = text_of(example.pieces[first : at + _AROUND])
    return {
        "id": example.guid,
        "text_a": text,
        "text_b": None,
        "label": vocabulary.word_piece(int(predictions.true_ids[slot])),
        "predicted": vocabulary.word_piece(int(predictions.best_ids[slot, 0])),
        "confidence": float(np.exp(predictions.best_log_probs[slot, 0])),
        "error": None,
        "marks": [(*where[at - first], "label")],
    }


OF_WORDS = ("masked_lm_accuracy", "masked_lm_loss", "perplexity")
OF_PAIRS = ("next_sentence_accuracy", "next_sentence_loss")

_LARGEST = 700.0  # exponent of a float


def _mean(sums: Floats) -> Floats:
    means: Floats = sums[:, 1] / np.maximum(sums[:, 0], 1)
    return means


def _perplexity(sums: Floats) -> Floats:
    perplexities: Floats = np.exp(np.minimum(_mean(sums), _LARGEST))
    return perplexities


def evaluate(predictions: MaskedPredictions, vocabulary: Vocabulary) -> Evaluation:
    """Measures predictions of N rows; each masked word counts once.

    The loss is the sum of the word and pair losses, as in training. Intervals resample documents.
    """
    sums = {**_of_words(predictions), **_of_pairs(predictions)}
    values = intervals.metrics_of_sums(sums)
    return Evaluation(
        values,
        values["masked_lm_loss"] + values.get("next_sentence_loss", 0.0),
        len(predictions.features),
        collapsed=_problem(predictions, vocabulary),
        panels=_tables(predictions, vocabulary),
        find_intervals=functools.partial(intervals.of_all_sums, sums, predictions.documents.astype(np.int64)),
    )


def _of_words(predictions: MaskedPredictions) -> intervals.Sums:
    rows, count = predictions.rows, len(predictions.features)
    places, right, losses = (
        np.bincount(rows, values, count) for values in (None, predictions.right.astype(float), -predictions.log_probs)
    )
    of_losses = np.stack([places, losses], axis=1)
    return {
        "masked_lm_accuracy": (_mean, np.stack([places, right], axis=1)),
        "masked_lm_loss": (_mean, of_losses),
        "perplexity": (_perplexity, of_losses),
    }


def _of_pairs(predictions: MaskedPredictions) -> intervals.Sums:
    if predictions.next_logits is None:
        return {}
    labels = predictions.features.targets[NEXT_LABELS.name]
    log_probs = probabilities.log_softmax(predictions.next_logits.astype(np.float64))
    right = (predictions.next_logits.argmax(axis=-1) == labels).astype(float)
    losses = -log_probs[np.arange(len(labels)), labels]
    ones = np.ones(len(labels))
    sums = (np.stack([ones, right], axis=1), np.stack([ones, losses], axis=1))
    return {name: (_mean, of_rows) for name, of_rows in zip(OF_PAIRS, sums)}


def _problem(predictions: MaskedPredictions, vocabulary: Vocabulary) -> str | None:
    best = predictions.best_ids[:, 0]
    if len(best) > 1 and np.all(best == best[0]) and np.any(predictions.true_ids != best[0]):
        return f"every masked word is predicted as {vocabulary.word_piece(int(best[0]))!r}"
    return None


def _tables(predictions: MaskedPredictions, vocabulary: Vocabulary) -> list[Panel]:
    """Returns accuracy and loss by the input at a position, and by the masked piece."""
    seen, true = predictions.seen_ids, predictions.true_ids
    is_mask, is_true = seen == vocabulary.mask_id, seen == true
    goes_on = np.array([vocabulary.word_piece(number).startswith("##") for number in true.tolist()], np.bool_)
    by_seen = {"[MASK]": is_mask, "the word itself": is_true, "another word": ~is_mask & ~is_true}
    by_piece = {"beginning of a word": ~goes_on, "rest of a word (##)": goes_on}
    return [
        _table(predictions, "Masked words by what the model reads instead", "reads", by_seen),
        _table(predictions, "Masked words by piece", "piece", by_piece),
    ]


def _table(predictions: MaskedPredictions, title: str, first: str, groups: Mapping[str, npt.NDArray[np.bool_]]) -> Panel:
    rows = [
        (name, int(mask.sum()), float(predictions.right[mask].mean()), float(-predictions.log_probs[mask].mean()))
        for name, mask in groups.items()
        if mask.any()
    ]
    return Panel(title, (first, "words", "accuracy", "loss"), rows)
