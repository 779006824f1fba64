"""Predictions as text, for files and streams: TSV, CSV or JSON lines. Shapes: E examples, L logits."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf import documents
from bert_tf.head_spec import REGRESSION, HeadSpec
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.example import Label, SentenceExample
from bert_tf.tasks.tables import JSONL, TSV
from bert_tf.text_table import cell


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one example."""

    id: str
    label: Label  # class, number, or labels that apply
    probabilities: Mapping[str, float]  # by label in class order; empty for regression


def listed(head: HeadSpec, label_names: Sequence[str], ids: Sequence[str], logits: scores.Logits) -> list[Prediction]:
    labels = scores.decode(head.kind, scores.predictions(head.kind, logits), label_names)
    values = [] if head.kind == REGRESSION else scores.scores(head.kind, logits).tolist()
    each = (dict(zip(label_names, row)) for row in values) if values else ({} for _ in ids)
    return [Prediction(*found) for found in zip(ids, labels, each)]


@dataclasses.dataclass(frozen=True)
class SentenceLayout:
    head: HeadSpec
    label_names: Sequence[str]  # by class index; empty for regression
    label_separator: str = ","  # as in the training data; JSON has a list
    form: str = TSV  # key of `tables.FORMATS`

    @property
    def columns(self) -> list[str]:
        """Id, label, and the probability of each label, or the score for regression."""
        is_number = self.head.kind == REGRESSION
        return ["id", "label", *(["score"] if is_number else [f"probability_{name}" for name in self.label_names])]

    def header(self) -> str:
        return "" if self.form == JSONL else self._text([self.columns])

    def rows(self, examples: Sequence[SentenceExample], predictions: scores.Logits) -> str:
        ids, logits = [example.guid for example in examples], predictions
        cells = score_cells(self.head, logits)
        labels: Sequence[Any] = [number for number, *_ in cells]
        if self.head.kind != REGRESSION:
            labels = scores.decode(self.head.kind, scores.predictions(self.head.kind, logits), self.label_names)
        rows = zip(ids, labels, cells)
        return self._objects(rows) if self.form == JSONL else self._text([id_, label, *numbers] for id_, label, numbers in rows)

    def _text(self, rows: Iterable[Sequence[Any]]) -> str:
        texts = ([self.label_separator.join(part) if isinstance(part, tuple) else part for part in row] for row in rows)
        if self.form == TSV:  # ids and labels of JSON and CSV may hold tabs and line breaks
            return "".join("\t".join(map(cell, row)) + "\n" for row in texts)
        written = io.StringIO()
        csv.writer(written).writerows(texts)  # as RFC 4180 has it: lines end with CRLF, and quotes hold line breaks
        return written.getvalue()

    def _objects(self, rows: Iterable[tuple[str, Any, list[str]]]) -> str:
        is_number = self.head.kind == REGRESSION
        values = ([id_, float(label) if is_number else label, *map(float, numbers)] for id_, label, numbers in rows)
        return "".join(documents.to_json(dict(zip(self.columns, row)), ensure_ascii=False) + "\n" for row in values)


def score_cells(head: HeadSpec, logits: scores.Logits) -> list[list[str]]:
    """Formats logits [E, L] as probabilities or numbers with enough digits to distinguish them."""
    cells: list[list[str]] = scores.scores(head.kind, logits).astype(str).tolist()
    return cells
