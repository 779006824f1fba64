"""Predictions of questions: as objects, as text, and those that are most confidently wrong."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import documents
from bert_tf.metrics import probabilities
from bert_tf.tasks.choice.example import ChoiceExample
from bert_tf.tasks.tables import JSONL, TSV
from bert_tf.text_table import cell

Logits = npt.NDArray[np.float64]  # of the options of a question

COLUMNS = ("id", "label", "option", "probability", "probabilities")

_KEPT = 50  # mistakes


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a model says of one question.

    Attributes:
      id: of the question.
      label: number of the option, from 0.
      option: its text.
      probabilities: of all options, in their order.
    """

    id: str
    label: int
    option: str
    probabilities: tuple[float, ...]

    @property
    def probability(self) -> float:
        """Of the option."""
        return self.probabilities[self.label]


def listed(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[Prediction]:
    """Returns a prediction for each question; of options with equal logits the first.

    Args:
      predictions: logits of the options of each.
      examples: as many.
    """
    return [_prediction(logits, example) for logits, example in zip(predictions, examples)]


def _prediction(logits: Logits, example: ChoiceExample) -> Prediction:
    best = int(logits.argmax())
    return Prediction(example.guid, best, example.options[best], tuple(probabilities.softmax(logits).tolist()))


@dataclasses.dataclass(frozen=True)
class ChoiceLayout:
    """How predictions are written: id, number and text of the option, its probability, and those of all options.

    Questions differ in how many options they have: in TSV and CSV their probabilities are one column, with spaces between; JSON
    has a list.

    Attributes:
      form: of `tables.FORMATS`.
    """

    form: str = TSV

    def header(self) -> str:
        """Returns the first line, with its end; nothing for JSON lines, in which each object names its values."""
        return "" if self.form == JSONL else self._text([COLUMNS])

    def rows(self, examples: Sequence[ChoiceExample], predictions: Sequence[Logits]) -> str:
        """Returns a line for each question, in their order.

        Args:
          examples: that were predicted.
          predictions: logits of the options of each.
        """
        found = listed(predictions, examples)
        if self.form == JSONL:
            return "".join(documents.to_json(_said(one), ensure_ascii=False) + "\n" for one in found)
        return self._text(_cells(one) for one in found)

    def _text(self, rows: Iterable[Sequence[str]]) -> str:
        if self.form == TSV:
            return "".join("\t".join(map(cell, row)) + "\n" for row in rows)
        written = io.StringIO()
        csv.writer(written).writerows(rows)
        return written.getvalue()


def _said(one: Prediction) -> dict[str, Any]:
    return dict(zip(COLUMNS, (one.id, one.label, one.option, one.probability, one.probabilities)))


def _cells(one: Prediction) -> list[str]:
    return [one.id, str(one.label), one.option, str(one.probability), " ".join(map(str, one.probabilities))]


def most_confident_mistakes(
    predictions: Sequence[Logits], examples: Sequence[ChoiceExample], *, kept: int = _KEPT
) -> list[dict[str, Any]]:
    """Returns the questions of which the model is surest of a wrong option, the worst first.

    Args:
      predictions: logits of the options of each.
      examples: as many, with labels.
      kept: most of them.
    """
    wrong = [pair for pair in zip(listed(predictions, examples), examples) if pair[0].label != pair[1].label]
    wrong.sort(key=lambda pair: -pair[0].probability)
    return list(_shown(wrong[:kept]))


def _shown(wrong: Iterable[tuple[Prediction, ChoiceExample]]) -> Iterator[dict[str, Any]]:
    for found, example in wrong:
        yield {
            "id": example.guid,
            "text_a": example.context,
            "text_b": example.question or None,
            "label": example.options[example.label or 0],
            "predicted": found.option,
            "confidence": found.probability,
        }
