"""Row formats of multiple choice: SWAG's columns, an object with options, or a RACE passage."""

from __future__ import annotations

import itertools
import numbers
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf.tasks import cells
from bert_tf.tasks.tables import RowError

LABEL = "label"
FORMS = (
    "sent1, sent2, ending0, ending1 ... and label; or context (or passage), question, options and label (or answer);"
    " or article, questions, options and answers"
)

_CONTEXTS = ("context", "passage", "article")
_LABELS = ("answer", "label")  # where the column of the setting is not there


class Question(NamedTuple):
    """The fields of a `ChoiceExample` except its name."""

    context: str
    question: str
    options: tuple[str, ...]
    label: int | None


class Form(NamedTuple):
    """A row format."""

    columns: tuple[str, ...]  # columns that are read
    questions: Callable[[Mapping[str, Any]], list[Question]]  # questions of a row by column; raises `RowError`


def form_of(has: Callable[[str], bool], label_column: str | None) -> Form | None:
    """Returns the row format; None if the columns match none. `label_column` is None if labels are to be predicted."""
    if has("ending0"):
        endings = tuple(itertools.takewhile(has, (f"ending{number}" for number in itertools.count())))
        texts = tuple(filter(has, ("sent1", "sent2")))
        labels = () if label_column is None else (label_column,)
        return Form((*texts, *endings, *labels), lambda row: [_of_endings(row, texts, endings, labels)])
    if has("questions") and has("options"):
        texts = (*tuple(filter(has, _CONTEXTS))[:1], "questions")
        labels = () if label_column is None else ("answers",)
        return Form((*texts, "options", *labels), lambda row: _of_passage(row, texts[:-1], labels))
    if has("options") and (has("question") or any(map(has, _CONTEXTS))):
        texts = tuple(filter(has, (*tuple(filter(has, _CONTEXTS))[:1], "question")))
        known = () if label_column is None else tuple(filter(has, (label_column, *_LABELS)))[:1] or (label_column,)
        return Form((*texts, "options", *known), lambda row: [_of_object(row, texts, known)])
    return None


def _of_endings(row: Mapping[str, Any], texts: Sequence[str], endings: Sequence[str], labels: Sequence[str]) -> Question:
    """SWAG's columns; trailing endings may be empty if other rows have more."""
    given = ["" if row[name] is None else row[name] for name in endings]
    while given and isinstance(given[-1], str) and not given[-1].strip():
        given.pop()
    options = tuple(cells.text(cell, name) for cell, name in zip(given, endings))
    known = [int(row[name]) if _is_number(row[name]) else row[name] for name in labels]
    return _question([row[name] for name in texts], texts, options, [*zip(known, labels)])


def _of_object(row: Mapping[str, Any], texts: Sequence[str], labels: Sequence[str]) -> Question:
    options = _texts(row["options"], "options")
    return _question([row[name] for name in texts], texts, options, [(row[name], name) for name in labels])


def _of_passage(row: Mapping[str, Any], contexts: Sequence[str], labels: Sequence[str]) -> list[Question]:
    """RACE's layout: parallel lists of questions, options and answers."""
    asked, options = _list(row["questions"], "questions"), _list(row["options"], "options")
    answers = [_list(row[name], name) for name in labels]
    for name, values in (("options", options), *zip(labels, answers)):
        if len(values) != len(asked):
            raise RowError(f"{len(asked)} questions and {len(values)} {name}")
    rows = zip(asked, options, *answers)
    named = (*contexts, "questions")
    found = []
    for number, (question, given, *answer) in enumerate(rows):
        try:
            texts = [*(row[name] for name in contexts), question]
            found.append(_question(texts, named, _texts(given, "options"), [*zip(answer, labels)]))
        except RowError as error:
            raise RowError(f"question {number}: {error}") from error
    return found


def _question(
    texts: Sequence[object], names: Sequence[str], options: tuple[str, ...], labels: Sequence[tuple[object, str]]
) -> Question:
    if len(options) < 2:
        raise RowError(f"{len(options) or 'no'} option{'' if len(options) == 1 else 's'}; give two at least")
    found = [cells.text("" if text is None else text, name, may_be_empty=True) for text, name in zip(texts, names)]
    if not any(text.strip() for text in found):
        raise RowError(f"the text in column {names[-1]!r} is empty")
    label = right_option(labels[0][0], options, labels[0][1]) if labels else None
    # What is read first of a question without a context is the question.
    context, question = found if len(found) > 1 and found[0].strip() else (found[-1], "")
    return Question(context, question, options, label)


def right_option(value: object, options: Sequence[str], column: str = LABEL) -> int:
    """Returns the index from 0 of an index (also as text), letter or option text; raises `RowError` if ambiguous."""
    meant = set(_meant(value, options))
    if len(meant) == 1:
        return meant.pop()
    last = string.ascii_uppercase[min(len(options), 26) - 1]
    known = f"a number from 0 to {len(options) - 1}, a letter from A to {last}, or the text of an option"
    if not meant:
        raise RowError(f"the value in column {column!r} is {value!r:.80}, not {known}")
    both = " and ".join(f"option {number}" for number in sorted(meant))
    raise RowError(f"the value in column {column!r}, {value!r:.80}, may be {both}; give a number (in JSON without quotes)")


def _meant(value: object, options: Sequence[str]) -> list[int]:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):  # NumPy's too
        return [int(value)] if 0 <= int(value) < len(options) else []
    if not isinstance(value, str):
        return []
    folded = value.strip()
    number = [int(folded)] if _is_number(folded) else []
    letter = [string.ascii_uppercase.index(folded.upper())] if len(folded) == 1 and folded in string.ascii_letters else []
    itself = [place for place, option in enumerate(options) if option.strip() == folded]
    return [place for place in (*number, *letter, *itself) if place < len(options)]


def _is_number(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip().isdecimal() and cell.strip().isascii()


def _list(value: object, column: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise RowError(f"the value in column {column!r} is not a list: {value!r:.80}")
    return list(value)


def _texts(value: object, column: str) -> tuple[str, ...]:
    return tuple(cells.text(option, column) for option in _list(value, column))
