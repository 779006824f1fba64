"""Predictions as text, for the files of a run and for streams: tab-separated, CSV or JSON lines.

Shapes: E examples, L logits.
"""

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
    """What a model says of one example.

    Attributes:
      id: of the example.
      label: the class, the number, or the labels that apply.
      probabilities: of each label by name, in the order of the classes; empty for a number.
    """

    id: str
    label: Label
    probabilities: Mapping[str, float]


def listed(head: HeadSpec, label_names: Sequence[str], ids: Sequence[str], logits: scores.Logits) -> list[Prediction]:
    """Returns a prediction for each example.

    Args:
      head: of the model.
      label_names: the position is the class index; empty where a number is predicted.
      ids: E of them.
      logits: [E, L], in their order.
    """
    labels = scores.decode(head.kind, scores.predictions(head.kind, logits), label_names)
    values = [] if head.kind == REGRESSION else scores.scores(head.kind, logits).tolist()
    each = (dict(zip(label_names, row)) for row in values) if values else ({} for _ in ids)
    return [Prediction(*found) for found in zip(ids, labels, each)]


@dataclasses.dataclass(frozen=True)
class SentenceLayout:
    """How the predictions of a model are written.

    Attributes:
      head: of the model.
      label_names: the position is the class index; empty where a number is predicted.
      label_separator: stands between several labels of an example, as in the data that they were learned from; JSON has a list.
      form: of `tables.FORMATS`.
    """

    head: HeadSpec
    label_names: Sequence[str]
    label_separator: str = ","
    form: str = TSV

    @property
    def columns(self) -> list[str]:
        """Id, label, and the probability of each label, or the score where a number is predicted."""
        is_number = self.head.kind == REGRESSION
        return ["id", "label", *(["score"] if is_number else [f"probability_{name}" for name in self.label_names])]

    def header(self) -> str:
        """Returns the first line, with its end; nothing for JSON lines, in which each object names its values."""
        return "" if self.form == JSONL else self._text([self.columns])

    def rows(self, examples: Sequence[SentenceExample], predictions: scores.Logits) -> str:
        """Returns a line for each example, in their order; any part of a file may be made at a time.

        Args:
          examples: E of them.
          predictions: their [E, L] logits.
        """
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
    """Returns E times L probabilities or numbers, with as many digits as tell them apart.

    Args:
      head: says what the logits mean.
      logits: [E, L].
    """
    cells: list[list[str]] = scores.scores(head.kind, logits).astype(str).tolist()
    return cells
