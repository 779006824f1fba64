"""Predictions of multiple choice: as objects, as text, and the most confident mistakes."""

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
    """Prediction for one question."""

    id: str  # id of the question
    label: int  # index of the chosen option, from 0
    option: str  # text of the chosen option
    probabilities: tuple[float, ...]  # of all options, in order

    @property
    def probability(self) -> float:
        return self.probabilities[self.label]


def listed(predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[Prediction]:
    """Returns one prediction per question; of options with equal logits, the first."""
    return [_prediction(logits, example) for logits, example in zip(predictions, examples)]


def _prediction(logits: Logits, example: ChoiceExample) -> Prediction:
    best = int(logits.argmax())
    return Prediction(example.guid, best, example.options[best], tuple(probabilities.softmax(logits).tolist()))


@dataclasses.dataclass(frozen=True)
class ChoiceLayout:
    """Columns: id, index and text of the option, its probability, and the probabilities of all options.

    Questions differ in their number of options: in TSV and CSV the probabilities are one column, separated by spaces;
    in JSON a list.
    """

    form: str = TSV  # key of `tables.FORMATS`

    def header(self) -> str:
        return "" if self.form == JSONL else self._text([COLUMNS])

    def rows(self, examples: Sequence[ChoiceExample], predictions: Sequence[Logits]) -> str:
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
    """Returns at most `kept` questions with the most confident wrong option, worst first."""
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
