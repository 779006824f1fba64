"""Files of questions: SQuAD's JSON, read article by article, or custom tables, row by row."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ijson

from bert_tf.errors import DataError
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST, TRAIN
from bert_tf.tasks.span import rows
from bert_tf.tasks.span.example import SpanExample
from bert_tf.tasks.tables import Report, RowError
from bert_tf.tasks.text_lines import Source

_SHOWN = 5  # ids in a message

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads .json files in SQuAD's layout, and all other files as tables."""

    may_be_none: bool  # questions may have no answer
    file_format: str | None = None  # of `tables.FORMATS`, if the suffix does not tell
    id_column: str | None = None  # of tables; by default `id` if it exists

    def __call__(self, source: Source, split: str, report: Report = tables.refuse) -> Iterator[SpanExample]:
        """Yields examples in constant memory; logs misplaced training answers, does not read answers of test."""
        is_table = self.file_format is not None or Path(os.fspath(source).removesuffix(".gz")).suffix.lower() != ".json"
        found = self._of_table(source, split, report) if is_table else self._of_articles(source, split, report)
        return _watched(found, source) if split == TRAIN else found

    def _of_table(self, source: Source, split: str, report: Report) -> Iterator[SpanExample]:
        table = tables.open_table(source, form=self.file_format)
        wanted = [rows.QUESTION, rows.CONTEXT, *([rows.ANSWER] if split != TEST else [])]
        optional = [rows.ID, rows.TITLE, *([rows.START] if split != TEST else [])]
        column_of = {name: name for name in (*wanted, *filter(table.has, optional))}
        if self.id_column is not None:
            column_of[rows.ID] = self.id_column

        def make(line: int, row: list[Any]) -> SpanExample:
            values = {name: None if cell == "" and name in optional else cell for name, cell in zip(column_of, row)}
            return rows.example(values, f"{split}-{line}", labelled=split != TEST, may_be_none=self.may_be_none)

        return table.read(list(column_of.values()), make, report)

    def _of_articles(self, source: Source, split: str, report: Report) -> Iterator[SpanExample]:
        for number, article in enumerate(_articles(source), start=1):
            place = f"article {number}"
            try:
                title = cells.text(_value(article, "title", ""), "title", may_be_empty=True)
                paragraphs = _items(article, "paragraphs")
            except RowError as error:
                report(DataError(f"{place}: {error}", source))
                continue
            for at, paragraph in enumerate(paragraphs, start=1):
                yield from self._of_paragraph(paragraph, title, split, _Where(source, f"{place}, paragraph {at}", report))

    def _of_paragraph(self, paragraph: Any, title: str, split: str, where: _Where) -> Iterator[SpanExample]:
        try:
            context, questions = cells.text(_value(paragraph, "context"), "context"), _items(paragraph, "qas")
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
        guid = cells.name(_value(question, rows.ID), rows.ID)
        values = {rows.QUESTION: _value(question, rows.QUESTION), rows.CONTEXT: context, rows.TITLE: title}
        if split != TEST:
            listed = [] if _value(question, "is_impossible", False) else _items(question, "answers")
            values[rows.ANSWER] = [_value(answer, "text") for answer in listed]
            values[rows.START] = [_value(answer, "answer_start") for answer in listed]
        return rows.example(values, guid, labelled=split != TEST, may_be_none=self.may_be_none)


@dataclasses.dataclass(frozen=True)
class _Where:
    """Position of a reader in a file."""

    source: Source
    place: str
    report: Report

    def report_at(self, more: str, error: RowError) -> None:
        self.report(DataError(f"{self.place}{more}: {error}", self.source))


def _articles(source: Source) -> Iterator[Any]:
    """Yields the articles of a file, one in memory at a time."""
    number = 0
    with text_lines.opened(source) as file:
        try:
            for number, article in enumerate(ijson.items(file, "data.item", use_float=True), start=1):  # noqa: B007
                yield article
        except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
            said = (_message(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
            hint = "" if number else "; name JSON lines .jsonl"
            raise DataError(f"not JSON: {said}; near article {number + 1}{hint}", source) from error
    if not number:
        raise DataError("no articles: expected SQuAD's layout, {'data': [...]}; name JSON lines .jsonl", source)


def _message(error: Exception) -> str:
    """Returns a parser's message; yajl's is bytes if it quotes invalid UTF-8."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(error)


def _value(parent: Any, name: str, default: Any = None) -> Any:
    if not isinstance(parent, dict):
        raise RowError(f"an object is expected, not {parent!r:.80}")
    if name not in parent and default is None:
        raise RowError(f"no {name!r} in the object")
    return parent.get(name, default)


def _items(parent: Any, name: str) -> list[Any]:
    found = _value(parent, name)
    if not isinstance(found, list):
        raise RowError(f"{name!r} is not a list: {found!r:.80}")
    return found


def _watched(examples: Iterable[SpanExample], source: Source) -> Iterator[SpanExample]:
    misplaced = []
    total = 0
    for example in examples:
        total += 1
        if example.is_misplaced:
            misplaced.append(example.guid)
        yield example
    if misplaced:
        shown = ", ".join(misplaced[:_SHOWN]) + (", ..." if len(misplaced) > _SHOWN else "")
        _LOG.warning(
            "%s: answers that are not where their start says, and are not trained on: %d of %d: %s",
            *(source, len(misplaced), total, shown),
        )
