"""Predictions of pairs, as objects and as text. Shapes: E examples, D hidden size."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import documents
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.tables import JSONL, TSV
from bert_tf.text_table import cell

Vectors = npt.NDArray[np.float32]  # [E, 2, D]
Floats = npt.NDArray[np.float64]

COLUMNS = ("id", "label", "cosine")


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one pair."""

    id: str
    label: float  # score on the scale of the data
    cosine: float  # of the vectors of both texts, -1 to 1


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


@dataclasses.dataclass(frozen=True)
class PairLayout:
    """Columns: id, score on the scale of the data, cosine."""

    highest_score: float = 1.0  # score at cosine 1
    form: str = TSV  # key of `tables.FORMATS`

    def header(self) -> str:
        return "" if self.form == JSONL else self._text([COLUMNS])

    def rows(self, examples: Sequence[SentenceExample], predictions: Vectors) -> str:
        found = [dataclasses.astuple(one) for one in listed(predictions, examples, self.highest_score)]
        if self.form == JSONL:
            return "".join(documents.to_json(dict(zip(COLUMNS, row)), ensure_ascii=False) + "\n" for row in found)
        return self._text(found)

    def _text(self, rows: Iterable[Sequence[Any]]) -> str:
        if self.form == TSV:
            return "".join("\t".join(cell(str(value)) for value in row) + "\n" for row in rows)
        written = io.StringIO()
        csv.writer(written).writerows(rows)
        return written.getvalue()
