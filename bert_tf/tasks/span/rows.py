"""Questions from rows: cells of a table, or rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_tf.errors import DataError
from bert_tf.tasks import cells
from bert_tf.tasks.sentence.rows import records
from bert_tf.tasks.span.example import Answer, SpanExample
from bert_tf.tasks.tables import RowError

QUESTION, CONTEXT, ANSWER, START, ID, TITLE = "question", "context", "answer", "start", "id", "title"
_ORDER = (QUESTION, CONTEXT, ANSWER, START)  # of rows that are sequences
_NO_ANSWER = "the question has no answer; --version_2_with_negative (--task_name=SQuAD2) allows that"


def example(values: Mapping[str, Any], guid: str, *, labelled: bool, may_be_none: bool) -> SpanExample:
    """Converts cells by column; `answer` and `start` may be lists, `start` may be missing. Raises `RowError`."""
    missing = [name for name in (QUESTION, CONTEXT, *([ANSWER] if labelled else [])) if name not in values]
    if missing:
        there = ", ".join(map(str, values)) or "no values"
        raise RowError(f"no {', '.join(missing)}; there are {there:.200}")
    question, context = (cells.text(values[name], name) for name in (QUESTION, CONTEXT))
    found = answers(values[ANSWER], values.get(START), context, may_be_none=may_be_none) if labelled else None
    named = values.get(ID)
    title = values.get(TITLE)
    return SpanExample(
        guid if named is None or named != named else cells.name(named, ID),
        question,
        context,
        found,
        "" if title is None or title != title else cells.text(title, TITLE, may_be_empty=True),
    )


def answers(texts: Any, starts: Any, context: str, *, may_be_none: bool) -> tuple[Answer, ...]:
    """Returns the answers of a row; an unknown start (from 0) is that of the text if unique in the context."""
    listed = [cells.text(one, ANSWER) for one in _list(texts)]
    if not listed and not may_be_none:
        raise RowError(_NO_ANSWER)
    firsts = [_start(one) for one in _list(starts)] or [_once(text, context) for text in listed]
    if listed and len(firsts) != len(listed):
        raise RowError(f"{len(listed)} answers and {len(firsts)} values of {START!r}")
    return tuple(map(Answer, listed, firsts))


def _list(value: Any) -> list[Any]:
    if value is None or value == "" or value != value:  # NaN, which data frames have where nothing is
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _start(value: Any) -> int:
    try:
        if isinstance(value, bool) or int(value) != float(value) or int(value) < 0:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError(f"the value in column {START!r} is not a whole number from 0 on: {value!r:.80}") from error
    return int(value)


def _once(text: str, context: str) -> int:
    first = context.find(text)
    return first if first == context.rfind(text) else -1


def read_rows(rows: Iterable[Any], split: str, *, labelled: bool, may_be_none: bool) -> list[SpanExample]:
    """Converts rows in memory to examples.

    A row is a mapping, or a row of a data frame, with `question`, `context`, and if labelled `answer` and `start`;
    `id` and `title` are optional. Or it is a sequence of the first four in this order. Without `start`, the answer
    text must occur exactly once in the context.
    """
    found = []
    for number, row in enumerate(records(rows, split)):
        try:
            found.append(example(_values(row), f"{split}-{number}", labelled=labelled, may_be_none=may_be_none))
        except RowError as error:
            raise DataError(f"row {number}: {error}", split) from error
    return found


def _values(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)) and 2 <= len(row) <= len(_ORDER):
        return dict(zip(_ORDER, row))
    raise RowError(f"is {row!r:.80}; give a mapping with {', '.join(_ORDER)}, or a sequence of these")
