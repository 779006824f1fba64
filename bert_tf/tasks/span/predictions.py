"""Answers of a model: chosen among candidates, and written to files."""

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
    """What a model says of one question.

    Attributes:
      id: of the example.
      label: the answer, as it stands in the context; empty for none.
      probability: of the answer among those that `n_best` lists.
      start: first character of the answer in the context; None for no answer.
      end: the one after the last.
      window: number of the window that it was found in, from 0.
      null_odds: by how much the score of no answer is above that of the best answer; None where all questions have one.
      n_best: the candidates with their probabilities, the best first.
    """

    id: str
    label: str
    probability: float
    start: int | None
    end: int | None
    window: int
    null_odds: float | None = None
    n_best: Sequence[tuple[Candidate, float]] = dataclasses.field(default=(), repr=False)

    @property
    def best(self) -> str:
        """The best answer, whether or not the threshold allows one; empty where there is none."""
        return next((candidate.text for candidate, _ in self.n_best if candidate.text), "")


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Of a split.

    Attributes:
      each: of every question.
      loss: mean over the windows that count; 0 where nothing is known of their answers.
      counted: how many windows count.
    """

    each: Sequence[Prediction]
    loss: float
    counted: int = 0

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """Returns those of several parts of a split as one."""
        counted = sum(part.counted for part in parts)
        loss = sum(part.loss * part.counted for part in parts) / max(counted, 1)
        return cls([one for part in parts for one in part.each], loss, counted)


def chosen(guid: str, found: Found, threshold: float | None) -> Prediction:
    """Returns the answer to a question.

    Args:
      guid: of its example.
      found: candidates.
      threshold: no answer where its score is above the best by more than this; None where all questions have an answer.
    """
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
    """How answers are written, line by line.

    Attributes:
      form: of `tables.FORMATS`.
      has_odds: whether there may be no answer.
    """

    form: str = TSV
    has_odds: bool = False

    @property
    def columns(self) -> list[str]:
        """Id, answer, its probability, characters and window; and the odds of no answer, where there may be none."""
        return ["id", "answer", "probability", "start", "end", "window", *(["null_odds"] if self.has_odds else [])]

    def header(self) -> str:
        """Returns the first line, with its end; nothing for JSON lines, in which each object names its values."""
        return "" if self.form == JSONL else self._line(self.columns)

    def rows(self, examples: Sequence[SpanExample], predictions: Predictions) -> str:
        """Returns a line for each question, in their order.

        Args:
          examples: E of them.
          predictions: their answers.
        """
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
    """Returns predictions.json, nbest_predictions.json and, where there may be no answer, null_odds.json, as published.

    Args:
      predictions: of a split.
      suffix: of the names.
    """
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
