"""Words and tags: column files such as CoNLL's, JSON lines, plain text to predict, and rows in memory."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf.errors import DataError
from bert_tf.extensions.tags import TagSettings, schemes, words
from bert_tf.tasks import cells, names, tables, text_lines
from bert_tf.tasks.base import TEST
from bert_tf.tasks.names import JSONL, PARQUET
from bert_tf.tasks.sentence.rows import each, id_of
from bert_tf.tasks.tables import RowError
from bert_tf.tasks.text_lines import Line


@dataclasses.dataclass(frozen=True)
class TagExample:
    guid: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None  # one tag per word, entities in the scheme of the labels; None to predict
    text: str | None = None  # source of the words; None if there are only words
    offsets: tuple[tuple[int, int], ...] = ()  # character span (start, end) of each word in `text`
    lines: tuple[str, ...] = ()  # lines of a column file by word, each below those that are no words, for the predictions
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
_COMMENT = "#"
_JUDGED = 3  # words of a sentence that shows whether they are words
_OF_TEXTS = "; if lines are texts, not words, add --raw_text"
_NO_WORD = " \t\r"  # blanks that are no word, as U+00A0 is
_RANGE, _EMPTY_NODE = re.compile(r"(\d+)-(\d+)"), re.compile(r"(\d+)\.\d+")  # of CoNLL-U, in the column of numbers


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
    skipped: list[str] = dataclasses.field(default_factory=list)  # lines below the last word that are no words
    problem: DataError | None = None


@dataclasses.dataclass(frozen=True)
class ColumnFile:
    word_column: int  # from 1; negative counts from the end
    tag_column: int | None  # same; None keeps the lines for predictions instead

    def sentences(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[Sentence]:
        """Yields each sentence as soon as it ends; one with an unusable row is reported and skipped."""
        is_judged = False
        for sentence in self._sentences(source, split, report):
            if not is_judged and len(sentence.example.words) >= _JUDGED:
                is_judged = True
                self._refuse_counted(sentence, text_lines.path_of(source))
            yield sentence

    def _refuse_counted(self, sentence: Sentence, path: str) -> None:
        """Raises DataError if the words are their numbers, as in the first column of CoNLL-U and GermEval."""
        numbers = [word for word in sentence.example.words if not (_RANGE.fullmatch(word) or _EMPTY_NODE.fullmatch(word))]
        if numbers and numbers == [str(number) for number in range(1, len(numbers) + 1)]:
            problem = f"column {self.word_column} has the numbers of the words: name that of the words with --word_column"
            raise DataError(problem, path, sentence.line)

    def _sentences(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[Sentence]:
        path, now = text_lines.path_of(source), _Open()
        first, lines = _first_row(text_lines.lines(source))
        width = len(_cells(first))
        remedy = _OF_TEXTS if self.tag_column is None and divider(first) == " " else ""
        for line in lines:
            if isinstance(line, Line) and not now.lines and _is_comment(line.text, first):
                now.before.append(line.text)
                continue
            if isinstance(line, Line) and _divides(line.text):
                blank = not line.text.strip()
                ends = bool(now.lines) or now.problem is not None
                after = (line.text,) if blank and ends else ()
                yield from self._ended(now, split, report, after)
                now = _Open(before=[] if after else [*([] if ends else [*now.before, *now.skipped]), line.text])
                continue
            if now.problem is not None:
                continue
            if isinstance(line, DataError):
                now.problem = line
                continue
            row = _cells(line.text)
            problem = self._problem(row, width)
            if problem:
                now.problem = DataError(problem + remedy, path, line.number)
                continue
            if self._is_no_word(row, len(now.lines)):
                now.skipped.append(line.text)
                continue
            now.lines.append(Line(line.number, "\n".join([*now.skipped, line.text])))
            now.cells.append(tuple(row[_index(column)] for column in self._columns))
            now.skipped = []
        yield from self._ended(now, split, report, ())
        if now.before and not now.lines and self.tag_column is None:  # the last lines of the file belong to no sentence
            yield Sentence(TagExample(f"{split}-end", (), before=tuple(now.before)), (), 0)

    @property
    def _columns(self) -> list[int]:
        return [self.word_column] if self.tag_column is None else [self.word_column, self.tag_column]

    def _is_no_word(self, row: Sequence[str], words: int) -> bool:
        """Whether a row of CoNLL-U, below so many words, is a range of words (2-3) or an empty node (8.1)."""
        if any(_index(column) % len(row) == 0 for column in self._columns):
            return False
        ends, node = _RANGE.fullmatch(row[0]), _EMPTY_NODE.fullmatch(row[0])
        return bool(ends and int(ends[1]) == words + 1 < int(ends[2])) or bool(node and int(node[1]) == words)

    def _problem(self, row: Sequence[str], width: int) -> str | None:
        if len(row) != width:
            hint = "; the last is empty: delete the tab at the end" if not row[-1] else ""
            return f"{len(row)} columns, expected {width}, as in the first row{hint}"
        for name, column in zip(("words", "tags"), self._columns):
            if not -width <= column < width + 1:
                return f"no column {column} for the {name}, there are {width}; name it with --{name[:-1]}_column"
            if not row[_index(column)].strip(_NO_WORD):
                return f"column {column}, of the {name}, is empty"
        if len({_index(column) % width for column in self._columns}) < len(self._columns):
            return f"one column for words and tags, {self.word_column} of {width}; name them with --word_column, --tag_column"
        return None

    def _ended(self, now: _Open, split: str, report: tables.Report, after: tuple[str, ...]) -> Iterator[Sentence]:
        if now.problem is not None:
            report(now.problem)
        elif now.lines:
            first = now.lines[0].number
            of_words, *tags = zip(*now.cells)
            example = TagExample(f"{split}-{first}", of_words)
            if self.tag_column is None:
                texts = tuple(line.text for line in now.lines)
                example = dataclasses.replace(example, lines=texts, before=tuple(now.before), after=(*now.skipped, *after))
            yield Sentence(example, tags[0] if tags else (), first, tuple(line.number for line in now.lines))


def _first_row(lines: Iterator[Line | DataError]) -> tuple[str, Iterator[Line | DataError]]:
    """Returns the first row that is no comment, empty if there is none, and all lines."""
    held: list[Line | DataError] = []
    for line in lines:
        held.append(line)
        if isinstance(line, Line) and not _divides(line.text) and not line.text.startswith(_COMMENT):
            return line.text, itertools.chain(held, lines)
    return "", iter(held)


def _is_comment(line: str, first_row: str) -> bool:
    """Whether a line above a sentence is a comment, as in CoNLL-U; the word # has the columns of a row, divided as there."""
    of_a_row = divider(line) == divider(first_row) and len(_cells(line)) == len(_cells(first_row))
    return line.startswith(_COMMENT) and not of_a_row


def _divides(line: str) -> bool:
    return not line.strip() or line.startswith(DOCUMENT)


def _cells(line: str) -> list[str]:
    if divider(line) == "\t":
        return [cell.strip(" ") for cell in line.split("\t")]
    return _BLANKS.split(line.strip(" "))


def _index(column: int) -> int:
    return column - 1 if column > 0 else column


# Readers

WORDS, TAGS, TEXT = ("tokens", "words"), ("tags", "ner_tags", "labels"), "text"  # keys of objects
_ID = "id"
_PLAIN = "; correct it, or if the tags are plain, list all with --labels (of --task_name=custom)"
_LABELS = "; if it is intended, list all tags with --labels (of --task_name=custom)"

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TagReader:
    settings: TagSettings
    form: str | None  # JSONL or PARQUET; None: by file name, default column file

    def read_examples(
        self, source: text_lines.Source, split: str, report: tables.Report, labels: Callable[[], Sequence[str]]
    ) -> Iterator[TagExample]:
        """Yields sentences, without tags for test; one with an unusable row is reported and skipped."""
        if split == TEST:
            yield from self._unlabelled(source, split, report)
            return
        yield from _labelled(self._sentences(source, split, report), labels(), text_lines.path_of(source), report)

    def tags(self, source: text_lines.Source, report: tables.Report = lambda _: None) -> Iterator[tuple[str, ...]]:
        """Yields the original tags of each sentence; a sentence with an unusable row is reported and skipped."""
        return (sentence.tags for sentence in self._sentences(source, "", report))

    def _sentences(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[Sentence]:
        if self.has_objects(source):
            return _objects(source, split, report)
        return ColumnFile(self.settings.word_column, self.settings.tag_column).sentences(source, split, report)

    def _unlabelled(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[TagExample]:
        if self.settings.raw_text and self._form(source) not in (JSONL, PARQUET):
            return _texts(source, split, report)
        if self.has_objects(source):
            return _unlabelled_objects(source, split, report)
        return (sentence.example for sentence in ColumnFile(self.settings.word_column, None).sentences(source, split, report))

    def _form(self, source: text_lines.Source) -> str | None:
        return self.form or tables.form_of(text_lines.path_of(source))

    def has_objects(self, source: text_lines.Source) -> bool:
        if self._form(source) == names.CSV:
            problem = "words and tags are no CSV: write columns divided by tabs, a blank line after each sentence"
            raise DataError(problem, text_lines.path_of(source))
        return self._form(source) in (JSONL, PARQUET)


def of_text(guid: str, text: str) -> TagExample:
    spans = words.split(text)
    return TagExample(guid, tuple(text[start:end] for start, end in spans), None, text, tuple(spans))


def converted(tags: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """Converts tags to the scheme of the labels (usually IOB2 for entities); raises `RowError` for an unknown tag."""
    known = dict.fromkeys(labels)
    if not schemes.are_of_entities(known):
        return tuple(cells.known_label(tag, known) for tag in tags)
    strange = [tag for tag in tags if not schemes.is_of_entity(tag)]
    if strange:
        raise RowError(f"the tag {strange[0]!r:.80} is neither O nor of an entity, as {labels[1]}{_PLAIN}")
    return tuple(cells.known_label(tag, known) for tag in schemes.in_scheme_of(known, tags))


def _labelled(sentences: Iterator[Sentence], labels: Sequence[str], path: str, report: tables.Report) -> Iterator[TagExample]:
    seen = schemes.Seen()
    for sentence in sentences:
        try:
            tags = converted(sentence.tags, labels)
        except RowError as problem:
            remedy = _LABELS if isinstance(problem, cells.UnknownLabelError) else ""
            line = _line_of_problem(sentence, labels)
            if line == 1 and sentence.numbers and not schemes.is_of_entity(sentence.tags[0]):
                remedy += "; if this line is a header, delete it"
            report(DataError(f"{problem}{remedy}", path, line))
            continue
        seen.add(sentence.tags, tags)
        yield dataclasses.replace(sentence.example, label=tags)
    if schemes.are_of_entities(labels) and seen.changed:
        text = "%s: tags in %s, converted to the scheme of the labels (%d words have another tag)"
        _LOG.info(text, path, seen.scheme, seen.changed)


def _line_of_problem(sentence: Sentence, labels: Sequence[str]) -> int:
    if not sentence.numbers:
        return sentence.line
    for number, tag in zip(sentence.numbers, sentence.tags):
        try:
            converted([tag], labels)
        except RowError:
            return number
    return sentence.line


def _objects(source: text_lines.Source, split: str, report: tables.Report) -> Iterator[Sentence]:
    table = _table(source)
    keys, ids = [_key(table, WORDS), _key(table, TAGS)], [_ID] if table.has(_ID) else []

    def sentence(line: int, row: list[Any]) -> Sentence:
        words, tags = _words_and_tags(row[0], row[1], keys)
        return Sentence(TagExample(_guid(split, line, row[2:]), words), tags, line)

    return table.read_rows([*keys, *ids], sentence, report)


def _unlabelled_objects(source: text_lines.Source, split: str, report: tables.Report) -> Iterator[TagExample]:
    table = _table(source)
    key, ids = _key(table, (*WORDS, TEXT)), [_ID] if table.has(_ID) else []

    def example(line: int, row: list[Any]) -> TagExample:
        guid = _guid(split, line, row[1:])
        if key == TEXT:
            return of_text(guid, cells.text(row[0], key, may_be_empty=True))
        return TagExample(guid, _words(row[0], key))

    return table.read_rows([key, *ids], example, report)


def _table(source: text_lines.Source) -> tables.Table:
    is_parquet = tables.form_of(text_lines.path_of(source)) == PARQUET
    return tables.open_table(source, form=PARQUET if is_parquet else JSONL)


def _key(table: tables.Table, names: Sequence[str]) -> str:
    """Returns the name that a table has; by default the first, so that the reader reports it missing."""
    return next((name for name in names if table.has(name)), names[0])


def _guid(split: str, line: int, ids: Sequence[Any]) -> str:
    return cells.name(ids[0], _ID) if ids else f"{split}-{line}"


def _listed(value: Any, key: str) -> list[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise RowError(f"the value of {key!r} is not a list: {value!r:.80}")
    return list(value)


def _words(value: Any, key: str = WORDS[0]) -> tuple[str, ...]:
    checked = tuple(cells.text(word, key, may_be_empty=True) for word in _listed(value, key))
    if not all(word.strip(_NO_WORD) for word in checked):
        raise RowError(f"a word in {key!r} is empty")
    return checked


def _words_and_tags(
    words: Any, tags: Any, keys: Sequence[str] = (WORDS[0], TAGS[0])
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    checked_words, named = _words(words, keys[0]), tuple(cells.name(tag, keys[1]) for tag in _listed(tags, keys[1]))
    if not checked_words:
        raise RowError(f"no words in {keys[0]!r}")
    if len(checked_words) != len(named):
        raise RowError(f"{len(checked_words)} words and {len(named)} tags")
    return checked_words, named


def _texts(source: text_lines.Source, split: str, report: tables.Report) -> Iterator[TagExample]:
    for line in text_lines.lines(source, alone=True):
        if isinstance(line, Line):
            yield of_text(f"{split}-{line.number}", line.text)
        else:
            report(line)


def read_rows(rows: Iterable[Any], split: str, *, labels: Sequence[str] | None) -> list[TagExample]:
    """Converts rows to examples; `labels` is None for rows without tags.

    With tags a row is (words, tags), or a mapping of `tokens` and `tags`. Without, it is a text, a list of words, or a
    mapping of `text` or `tokens`. Mappings may have an `id`.
    """
    if labels is None:
        return list(each(rows, split, lambda row, name: _untagged(row, id_of(row, name))))

    def example(row: Any, name: str) -> TagExample:
        words, tags = _tagged(row)
        return TagExample(id_of(row, name), words, converted(tags, labels))

    return list(each(rows, split, example))


def found_labels(rows: Iterable[Any], split: str) -> tuple[str, ...]:
    """Returns the tags of labelled rows, see `schemes.labels_of_counts`; raises `DataError` for too few."""
    counts = collections.Counter(tag for row in each(rows, split, lambda row, _: _tagged(row)) for tag in row[1])
    if len(counts) < 2:
        present = f"every word has the tag {next(iter(counts))!r}" if counts else "no word has a tag"
        raise DataError(f"{present}; at least two tags are required: give labels=(...) or other rows", split)
    problem = schemes.problem_of(counts)
    if problem:
        raise DataError(f"{problem}; if they are plain tags, list all with labels=(...)", split)
    return schemes.labels_of_counts(counts)


def _untagged(row: Any, guid: str) -> TagExample:
    if isinstance(row, Mapping):
        words = _value(row, WORDS)
        row = row.get(TEXT) if words is None else words
    return of_text(guid, cells.text(row, TEXT, may_be_empty=True)) if isinstance(row, str) else TagExample(guid, _words(row))


def _tagged(row: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(row, Mapping):
        row = (_value(row, WORDS), _value(row, TAGS))
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 2:
        raise RowError(f"is {row!r:.80}; give (words, tags), or a mapping of {WORDS[0]} and {TAGS[0]}")
    return _words_and_tags(*row)


def _value(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def row_of(example: TagExample) -> dict[str, str]:
    """The row of an example, as `Model.predict` takes it."""
    return {"text": example.texts[0]}
