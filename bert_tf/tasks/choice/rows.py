"""Multiple choice rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import DataError
from bert_tf.tasks import cells
from bert_tf.tasks.choice import questions, reading
from bert_tf.tasks.choice.example import ChoiceExample
from bert_tf.tasks.choice.questions import LABEL, Question
from bert_tf.tasks.sentence.rows import records
from bert_tf.tasks.tables import RowError

_ID = "id"
_ORDER = ("context", "question", "options")  # of sequences


def read_rows(rows: Iterable[Any], split: str, *, labelled: bool) -> list[ChoiceExample]:
    """Reads mappings with the keys of files, or sequences (context, question, options, label), once."""
    return [
        example
        for number, row in enumerate(records(rows, split))
        for example in _examples(row, number, split, labelled=labelled)
    ]


def _examples(row: Any, number: int, split: str, *, labelled: bool) -> list[ChoiceExample]:
    try:
        found, numbered = _questions(_mapping(row, labelled=labelled), labelled=labelled)
        given = row.get(_ID) if isinstance(row, Mapping) else None
        name = f"{split}-{number}" if given is None or given != given else cells.name(given, _ID)
        return reading.named(name, found, numbered=numbered)
    except RowError as error:
        raise DataError(f"row {number}: {error}", split) from error


def _mapping(row: Any, *, labelled: bool) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    names = (*_ORDER, LABEL) if labelled else _ORDER
    if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(names):
        raise RowError(f"is {row!r:.80}; give ({', '.join(names)}) or a mapping: {questions.FORMS}")
    return dict(zip(names, row))


def _questions(row: Mapping[str, Any], *, labelled: bool) -> tuple[list[Question], bool]:
    form = questions.form_of(row.__contains__, LABEL if labelled else None)
    missing = [] if form is None else [column for column in form.columns if column not in row]
    if form is None or missing:
        there = ", ".join(map(str, row))
        lacks = f"no {', '.join(map(repr, missing))}" if missing else "no question"
        raise RowError(f"{lacks}; the row has {there:.200}; give {questions.FORMS}")
    return form.questions(row), "questions" in form.columns
