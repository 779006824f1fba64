"""Files of questions: SQuAD's JSON, read article by article, or custom tables, row by row."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ijson

from bert_tf.errors import DataError
from bert_tf.io import files
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST, TRAIN
from bert_tf.tasks.sentence.rows import each, id_of, is_missing
from bert_tf.tasks.tables import Report, RowError
from bert_tf.tasks.text_lines import Source


class Answer(NamedTuple):
    """A reference answer."""

    text: str  # as in the context
    start: int  # first character; -1 if unknown and not unique


@dataclasses.dataclass(frozen=True)
class SpanExample:
    guid: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None = None  # the first is learned; empty for no answer, None if it is to be predicted
    title: str = ""  # of the article, whose questions are not independent of each other

    @property
    def label(self) -> tuple[str, ...] | None:
        """Distinct texts of the answers."""
        return None if self.answers is None else tuple(dict.fromkeys(answer.text for answer in self.answers))

    @property
    def texts(self) -> tuple[str, ...]:
        return self.question, self.context

    @property
    def is_misplaced(self) -> bool:
        """Whether the first answer, the one to learn, is not at its recorded position."""
        if not self.answers:
            return False
        text, start = self.answers[0]
        return not text or start < 0 or not self.context.startswith(text, start)


QUESTION, CONTEXT, ANSWER, START, ID, TITLE = "question", "context", "answer", "start", "id", "title"
_START_OF_SQUAD = "answer_start"
_ANSWERS, _LISTS = "answers", {"text": ANSWER, _START_OF_SQUAD: START}  # of `datasets`
_MISPLACED = "answers not found at their start (without one: not exactly once in the context)"
_ORDER = (QUESTION, CONTEXT, ANSWER, START)  # of rows that are sequences


def to_example(values: Mapping[str, Any], guid: str, *, labelled: bool, may_be_none: bool) -> SpanExample:
    """Converts cells by column; `answer` and `start` (or `answer_start`) may be lists, `start` may be missing.

    Raises `RowError`.
    """
    values = _with_listed_answers(values) if labelled else values
    missing = [name for name in (QUESTION, CONTEXT, *([ANSWER] if labelled else [])) if name not in values]
    if missing:
        columns = ", ".join(map(str, values)) or "no values"
        raise RowError(f"no {', '.join(missing)}; there are {columns:.200}")
    question, context = (cells.text(values[name], name) for name in (QUESTION, CONTEXT))
    starts = values.get(START, values.get(_START_OF_SQUAD))
    gold = answers(values[ANSWER], starts, context, may_be_none=may_be_none) if labelled else None
    title = values.get(TITLE)
    return SpanExample(
        id_of(values, guid),
        question,
        context,
        gold,
        "" if is_missing(title) else cells.text(title, TITLE, may_be_empty=True),
    )


def _with_listed_answers(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns cells with the answers of `datasets`: an object of two lists."""
    listed = values.get(_ANSWERS)
    if isinstance(listed, (list, tuple)) and all(isinstance(answer, Mapping) for answer in listed):  # of SQuAD
        listed = {name: [answer.get(name) for answer in listed] for name in _LISTS}
    if ANSWER in values or not isinstance(listed, Mapping):
        return values
    absent = [name for name in _LISTS if not isinstance(listed.get(name), (list, tuple))]
    if absent:
        raise RowError(f"no list {absent[0]!r} in {_ANSWERS!r}: {listed!r:.80}")
    return {**values, **{column: listed[name] for name, column in _LISTS.items()}}


def answers(texts: Any, starts: Any, context: str, *, may_be_none: bool) -> tuple[Answer, ...]:
    """Returns the answers of a row; an unknown start (from 0) is that of the text if unique in the context."""
    listed = [cells.text(text, ANSWER) for text in _list(texts)]
    if not listed and not may_be_none:
        raise RowError("the question has no answer; --version_2_with_negative (--task_name=SQuAD2) allows that")
    firsts = [_start(value) for value in _list(starts)] or [_once(text, context) for text in listed]
    if listed and len(firsts) != len(listed):
        raise RowError(f"{len(listed)} answers and {len(firsts)} values of {START!r}")
    return tuple(map(Answer, listed, firsts))


def _list(value: Any) -> list[Any]:
    if is_missing(value) or value == "":
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _start(value: Any) -> int:
    try:
        number = float(value)
        if isinstance(value, bool) or not number.is_integer() or number < 0:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"the value in column {START!r} is not a whole number from 0 on: {value!r:.80}"
        raise RowError(f"{problem}; leave out the starts that are unknown, or correct them") from error
    return int(number)


def _once(text: str, context: str) -> int:
    first = context.find(text)
    return first if first == context.rfind(text) else -1


def read_rows(rows: Iterable[Any], split: str, *, labelled: bool, may_be_none: bool) -> list[SpanExample]:
    """Converts rows in memory to examples.

    A row is a mapping, or a row of a data frame, with `question`, `context`, and if labelled `answer` and `start` (or
    `answer_start`); `id` and `title` are optional. Or it is a sequence of the first four in this order. Without `start`,
    the answer text must occur exactly once in the context.
    """
    return list(each(rows, split, lambda row, name: to_example(_values(row), name, labelled=labelled, may_be_none=may_be_none)))


def _values(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)) and 2 <= len(row) <= len(_ORDER):
        return dict(zip(_ORDER, row))
    raise RowError(f"is {row!r:.80}; give a mapping with {', '.join(_ORDER)}, or a sequence of these")


_SHOWN = 5  # ids in a message

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads .json files in SQuAD's layout, and all other files as tables."""

    may_be_none: bool  # questions may have no answer
    file_format: str | None = None  # of `names.INPUT_FORMATS`, if the suffix does not tell
    id_column: str | None = None  # of tables; by default `id` if it exists
    needs_ids: bool = True  # of files to predict, if `id_column` is given

    def __call__(self, source: Source, split: str, report: Report = tables.refuse) -> Iterator[SpanExample]:
        """Yields examples in constant memory; logs misplaced training answers, does not read answers of test."""
        is_table = self.file_format is not None or Path(files.uncompressed(os.fspath(source))).suffix.lower() != ".json"
        examples = self._of_table(source, split, report) if is_table else self._of_articles(source, split, report)
        return _watched(examples, source) if split == TRAIN else examples

    def _of_table(self, source: Source, split: str, report: Report) -> Iterator[SpanExample]:
        table = tables.open_table(source, form=self.file_format)
        answer = ANSWER if table.has(ANSWER) or not table.has(_ANSWERS) else _ANSWERS
        wanted = [QUESTION, CONTEXT, *([answer] if split != TEST else [])]
        optional = [ID, TITLE, *([START, _START_OF_SQUAD] if split != TEST else [])]
        ids = table.ids(self.id_column, needed=split == TEST and self.needs_ids, usual=ID)
        column_of = {name: name for name in (*wanted, *filter(table.has, optional))}
        if ids:
            column_of[ID] = ids[0]

        def make(line: int, row: list[Any]) -> SpanExample:
            values = {name: None if cell == "" and name in optional else cell for name, cell in zip(column_of, row)}
            return to_example(values, f"{split}-{line}", labelled=split != TEST, may_be_none=self.may_be_none)

        return table.read_rows(list(column_of.values()), make, report)

    def _of_articles(self, source: Source, split: str, report: Report) -> Iterator[SpanExample]:
        for number, article in enumerate(_articles(source), start=1):
            location = f"article {number}"
            try:
                title = cells.text(_member(article, "title", ""), "title", may_be_empty=True)
                paragraphs = _items(article, "paragraphs")
            except RowError as error:
                report(DataError(f"{location}: {error}", source))
                continue
            for at, paragraph in enumerate(paragraphs, start=1):
                yield from self._of_paragraph(paragraph, title, split, _Where(source, f"{location}, paragraph {at}", report))

    def _of_paragraph(self, paragraph: Any, title: str, split: str, where: _Where) -> Iterator[SpanExample]:
        try:
            context, questions = cells.text(_member(paragraph, "context"), "context"), _items(paragraph, "qas")
        except RowError as error:
            where.report_at("", error)
            return
        for at, question in enumerate(questions, start=1):
            try:
                example = self._of_question(question, context, title, split)
            except RowError as error:
                where.report_at(f", question {at}", error)
            else:
                yield example

    def _of_question(self, question: Any, context: str, title: str, split: str) -> SpanExample:
        guid = cells.name(_member(question, ID), ID)
        values = {QUESTION: _member(question, QUESTION), CONTEXT: context, TITLE: title}
        if split != TEST:
            impossible = _member(question, "is_impossible", False)
            if not (impossible is None or isinstance(impossible, bool)):
                raise RowError(f"'is_impossible' is neither true nor false: {impossible!r:.80}; write it without quotes")
            listed = [] if impossible else _items(question, "answers")
            values[ANSWER] = [_member(answer, "text") for answer in listed]
            values[START] = [_member(answer, "answer_start") for answer in listed]
        return to_example(values, guid, labelled=split != TEST, may_be_none=self.may_be_none)


@dataclasses.dataclass(frozen=True)
class _Where:
    """Position of a reader in a file."""

    source: Source
    location: str
    report: Report

    def report_at(self, more: str, error: RowError) -> None:
        self.report(DataError(f"{self.location}{more}: {error}", self.source))


def _articles(source: Source) -> Iterator[Any]:
    """Yields the articles of a file, one in memory at a time."""
    number = 0
    with text_lines.opened(source) as file:
        try:
            for number, article in enumerate(ijson.items(file, "data.item", use_float=True), start=1):  # noqa: B007
                yield article
        except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
            argument = error.args[0] if error.args else ""  # yajl's is bytes if it quotes invalid UTF-8
            message = argument.decode(errors="replace") if isinstance(argument, bytes) else str(error)
            reason = (message or type(error).__name__).strip().splitlines()[0].rstrip(".")
            hint = "" if number else "; name JSON lines .jsonl"
            raise DataError(f"not JSON: {reason}; near article {number + 1}{hint}", source) from error
    if not number:
        raise DataError("no articles: expected SQuAD's layout, {'data': [...]}; name JSON lines .jsonl", source)


def _member(parent: Any, name: str, default: Any = None) -> Any:
    if not isinstance(parent, dict):
        raise RowError(f"expected an object, not {parent!r:.80}")
    if name not in parent and default is None:
        raise RowError(f"no {name!r} in the object")
    return parent.get(name, default)


def _items(parent: Any, name: str) -> list[Any]:
    items = _member(parent, name)
    if not isinstance(items, list):
        raise RowError(f"{name!r} is not a list: {items!r:.80}")
    return items


def _watched(examples: Iterable[SpanExample], source: Source) -> Iterator[SpanExample]:
    misplaced = []
    total = 0
    for example in examples:
        total += 1
        if example.is_misplaced:
            misplaced.append(example.guid)
        yield example
    if misplaced and len(misplaced) == total:
        raise DataError(f"no row can be trained on: {_MISPLACED}", source)
    if misplaced:
        shown = ", ".join(misplaced[:_SHOWN]) + (", ..." if len(misplaced) > _SHOWN else "")
        _LOG.warning(
            "%s: %s, so not trained on: %d of %d: %s",
            *(source, _MISPLACED, len(misplaced), total, shown),
        )


def row_of(example: SpanExample) -> dict[str, str]:
    """The row of an example, as `Model.predict` takes it."""
    return {"question": example.question, "context": example.context}
