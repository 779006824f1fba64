"""Answers of a model: selected from candidates, and written to files."""

from __future__ import annotations

import csv
import dataclasses
import io
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import documents
from bert_tf.tasks.span.decoding import Candidate, Found
from bert_tf.tasks.span.example import SpanExample
from bert_tf.tasks.tables import JSONL, TSV
from bert_tf.text_table import cell

_LOG = logging.getLogger(__name__)

PUBLISHED_FILES = ("predictions", "nbest_predictions", "null_odds")  # JSON; the last where there may be no answer


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one question."""

    id: str
    label: str  # answer as in the context; empty for none
    probability: float  # relative to the candidates in `n_best`
    start: int | None  # first character in the context; None for no answer
    end: int | None  # exclusive
    window: int  # number of its window, from 0
    null_odds: float | None = None  # score of no answer minus best; None if always answered
    # candidates with probabilities, best first
    n_best: Sequence[tuple[Candidate, float]] = dataclasses.field(default=(), repr=False)

    @property
    def best(self) -> str:
        """Best answer regardless of the threshold; empty if there is none."""
        return next((candidate.text for candidate, _ in self.n_best if candidate.text), "")


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions for a split."""

    each: Sequence[Prediction]
    loss: float  # mean over windows that count; 0 without labels
    counted: int = 0  # number of windows that count

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        counted = sum(part.counted for part in parts)
        loss = sum(part.loss * part.counted for part in parts) / max(counted, 1)
        return cls([one for part in parts for one in part.each], loss, counted)


def chosen(guid: str, found: Found, threshold: float | None) -> Prediction:
    """Selects an answer: none if its score exceeds the best by more than `threshold` (None: always answers)."""
    candidates = list(found.candidates)
    odds = None
    if threshold is not None:
        odds = found.none.score - candidates[0].score if candidates else None
        candidates = sorted([*candidates, found.none], key=lambda one: -one.score)
    candidates = candidates or [found.none]
    probabilities = _softmax([one.score for one in candidates])
    is_none = threshold is not None and (odds is None or odds > threshold)
    place = next((n for n, one in enumerate(candidates) if bool(one.text) != is_none), 0)
    best = candidates[place]
    listed = tuple(zip(candidates, probabilities))
    return Prediction(guid, best.text, probabilities[place], best.start, best.end, best.window, odds, listed)


def _softmax(scores: Sequence[float]) -> list[float]:
    shifted = np.exp(np.array(scores) - max(scores))
    found: list[float] = (shifted / shifted.sum()).tolist()
    return found


@dataclasses.dataclass(frozen=True)
class SpanLayout:
    form: str = TSV  # key of `tables.FORMATS`
    has_odds: bool = False  # questions may have no answer

    @property
    def columns(self) -> list[str]:
        """Id, answer, its probability, characters and window; also the odds of no answer if allowed."""
        return ["id", "answer", "probability", "start", "end", "window", *(["null_odds"] if self.has_odds else [])]

    def header(self) -> str:
        return "" if self.form == JSONL else self._line(self.columns)

    def rows(self, examples: Sequence[SpanExample], predictions: Predictions) -> str:
        del examples
        return "".join(map(self._row, predictions.each))

    def _row(self, one: Prediction) -> str:
        values = [one.id, one.label, one.probability, one.start, one.end, one.window, one.null_odds][: len(self.columns)]
        if self.form == JSONL:
            return documents.to_json(dict(zip(self.columns, values)), ensure_ascii=False) + "\n"
        return self._line(["" if value is None else str(value) for value in values])

    def _line(self, values: Sequence[str]) -> str:
        if self.form == TSV:  # answers may hold tabs and line breaks
            return "\t".join(map(cell, values)) + "\n"
        written = io.StringIO()
        csv.writer(written).writerow(values)
        return written.getvalue()


def published_files(predictions: Predictions, suffix: str) -> dict[str, str]:
    """Returns the published predictions.json, nbest_predictions.json and, if no answer is allowed, null_odds.json."""
    each = predictions.each
    answers = {one.id: one.label for one in each}
    n_best = {one.id: [_as_published(*listed) for listed in one.n_best] for one in each}
    odds = {one.id: one.null_odds for one in each if one.null_odds is not None}
    if len(answers) < len(each):
        _LOG.warning(
            "questions with the id of an earlier one: %d; the JSON files hold the last answer", len(each) - len(answers)
        )
    files = zip(PUBLISHED_FILES, (answers, n_best, odds) if odds else (answers, n_best))
    return {f"{name}{suffix}.json": documents.to_json(values, indent=4) + "\n" for name, values in files}


def _as_published(one: Candidate, probability: float) -> dict[str, Any]:
    return {"text": one.text, "probability": probability, "start_logit": one.start_logit, "end_logit": one.end_logit}
