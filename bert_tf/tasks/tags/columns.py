"""Column files, such as CoNLL's: one line per word, a blank line after each sentence."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bert_tf.errors import DataError
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.text_lines import Line


@dataclasses.dataclass(frozen=True)
class TagExample:
    guid: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None  # one tag per word, entities in IOB2; None to predict
    text: str | None = None  # source of the words; None if there are only words
    offsets: tuple[tuple[int, int], ...] = ()  # character span (start, end) of each word in `text`
    lines: tuple[str, ...] = ()  # lines of a column file by word, for the predictions
    before: tuple[str, ...] = ()  # lines between the previous sentence and this one
    after: tuple[str, ...] = ()  # blank line that ends it, if any

    @property
    def texts(self) -> tuple[str]:
        """The text; without one, the words joined with spaces."""
        return (" ".join(self.words) if self.text is None else self.text,)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Character span (start, end) of each word in the text of `texts`."""
        if self.text is not None:
            return list(self.offsets)
        ends = list(itertools.accumulate(len(word) + 1 for word in self.words))
        return [(end - len(word) - 1, end - 1) for word, end in zip(self.words, ends)]


DOCUMENT = "-DOCSTART-"  # begins the line that begins a document
_BLANKS = re.compile(" +")


class Sentence(NamedTuple):
    """A sentence of a file."""

    example: TagExample  # without tags
    tags: tuple[str, ...]  # of its words; empty if not read
    line: int  # first line
    numbers: tuple[int, ...] = ()  # line of each word; empty if all are on one line


def divider(line: str) -> str:
    return "\t" if "\t" in line else " "


@dataclasses.dataclass
class _Open:
    """A sentence being read, and the lines before it."""

    before: list[str] = dataclasses.field(default_factory=list)
    lines: list[Line] = dataclasses.field(default_factory=list)
    cells: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    problem: DataError | None = None


@dataclasses.dataclass(frozen=True)
class ColumnFile:
    word_column: int  # from 1; negative counts from the end
    tag_column: int | None  # same; None keeps the lines for predictions instead

    def sentences(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[Sentence]:
        """Yields each sentence as soon as it ends; one with an unusable row is reported and skipped."""
        path, width, now = text_lines.path_of(source), 0, _Open()
        for line in text_lines.lines(source):
            if isinstance(line, Line) and _divides(line.text):
                blank = not line.text.strip()
                ends = bool(now.lines) or now.problem is not None
                after = (line.text,) if blank and ends else ()
                yield from self._ended(now, split, report, after)
                now = _Open(before=[] if after else [*([] if ends else now.before), line.text])
                continue
            if now.problem is not None:
                continue
            if isinstance(line, DataError):
                now.problem = line
                continue
            cells = _cells(line.text)
            width = width or len(cells)
            problem = self._problem(cells, width)
            if problem:
                now.problem = DataError(problem, path, line.number)
                continue
            now.lines.append(line)
            now.cells.append(tuple(cells[_place(column)] for column in self._columns))
        yield from self._ended(now, split, report, ())
        if now.before and not now.lines and self.tag_column is None:  # the last lines of the file belong to no sentence
            yield Sentence(TagExample(f"{split}-end", (), before=tuple(now.before)), (), 0)

    @property
    def _columns(self) -> list[int]:
        return [self.word_column] if self.tag_column is None else [self.word_column, self.tag_column]

    def _problem(self, cells: Sequence[str], width: int) -> str | None:
        if len(cells) != width:
            return f"{len(cells)} columns where {width} are expected, as in the first row"
        for name, column in zip(("words", "tags"), self._columns):
            if not -width <= column < width + 1:
                return f"no column {column} for the {name}, there are {width}; name it with --{name[:-1]}_column"
            if not cells[_place(column)].strip():
                return f"column {column}, of the {name}, is empty"
        if len({_place(column) % width for column in self._columns}) < len(self._columns):
            return f"one column for words and tags, {self.word_column} of {width}; name them with --word_column, --tag_column"
        return None

    def _ended(self, now: _Open, split: str, report: tables.Report, after: tuple[str, ...]) -> Iterator[Sentence]:
        if now.problem is not None:
            report(now.problem)
        elif now.lines:
            first = now.lines[0].number
            words, *tags = zip(*now.cells)
            example = TagExample(f"{split}-{first}", words)
            if self.tag_column is None:
                kept = tuple(line.text for line in now.lines)
                example = dataclasses.replace(example, lines=kept, before=tuple(now.before), after=after)
            yield Sentence(example, tags[0] if tags else (), first, tuple(line.number for line in now.lines))


def _divides(line: str) -> bool:
    return not line.strip() or line.startswith(DOCUMENT)


def _cells(line: str) -> list[str]:
    return line.split("\t") if divider(line) == "\t" else _BLANKS.split(line.strip(" "))


def _place(column: int) -> int:
    return column - 1 if column > 0 else column
