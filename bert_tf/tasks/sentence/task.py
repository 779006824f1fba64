"""Custom sentences as a task: tables with any columns; labels are discovered in the training file."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import logging
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import metrics
from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.sentence.family import OTHER_TEXTS, SEPARATORS, SentenceFamily, usual_separator
from bert_tf.tasks.sentence.rows import USUAL_TEXTS, Label, RowColumns, SentenceExample, usual_texts
from bert_tf.tasks.settings import CUSTOM, CustomSettings, listed_labels

_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs
# Names of columns of texts, in a header line.
_HEADERS = {name for names in USUAL_TEXTS for name in names}
_HEADERS |= {"body", "comment", "content", "description", "document", "message", "question", "review", "subject", "title"}

_LIST_THEM = "list all labels with --labels"
_FEW = 10  # maximum classes with numbers as names, such as ratings
_RARE, _RARE_SHARE = 5, 0.005  # rows, and share of all, below which a label may be a mistake
_SHORTEST, _LONGEST = 4, 64  # letters of a name of which one may be a mistake
_NAMED = 5  # labels in a warning
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_DIGITS = re.compile(r"\d")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


class CustomTask(FileTask):
    """Sentences in the files of the settings; `data_dir` is ignored."""

    def __init__(
        self,
        settings: CustomSettings,
        labels: Sequence[str] | None = None,
        *,
        needs_ids: bool = True,
        texts: int | None = None,
    ) -> None:
        """Reads no file yet; `labels` are those of a trained model, by index, and `texts` the number of its texts per row.

        Raises FlagError if settings contradict each other.
        """
        super().__init__(CUSTOM, self._sentences, self.stream, settings, {})
        self._settings, self._needs_ids, self._learned_texts = settings, needs_ids, texts
        self._label_column = LabelColumn(settings.label_column, settings.problem, settings.label_separator)
        listed = listed_labels(settings)
        self._given_labels = tuple(labels or listed)
        if listed and set(listed) != set(self._given_labels):
            raise FlagError(f"--labels={settings.labels}: the model was trained on {', '.join(self._given_labels)}")
        if settings.text_b and not settings.text_a:
            raise FlagError("--text_b names the second text; name the first with --text_a")
        if not settings.label_separator:
            raise FlagError("--label_separator is empty")
        if labels is None and settings.problem != MULTI_LABEL and settings.label_separator != CustomSettings.label_separator:
            raise FlagError(f"--label_separator divides several labels of a cell: add --problem={MULTI_LABEL}")
        problem = self._label_column.ambiguous(listed)
        if problem:
            raise FlagError(problem)

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Label names from the arguments, else from the training file, see `LabelColumn.discover`; empty for regression."""
        if self._given_labels or self._settings.problem == REGRESSION:
            return self._given_labels
        if not self._settings.train_file:
            raise FlagError("--labels=a,b,c is required without a --train_file")
        return self._label_column.discover(self._table(self._settings.train_file), may_have_header=self._may_have_header)

    def _sentences(self) -> SentenceFamily:
        kind, columns = self._settings.problem, dataclasses.asdict(self.row_columns)
        separator = self._settings.label_separator if kind == MULTI_LABEL else usual_separator(self.labels)
        return SentenceFamily(self.labels, kind, metrics.usual(kind, len(self.labels)), separator, **columns)

    @property
    def row_columns(self) -> RowColumns:
        """Keys of rows in memory: the columns of the files, if these have names."""
        return RowColumns.from_settings(vars(self._settings))

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> list[SentenceExample]:
        path = self.file(data_dir, split)
        numbered = tables.usable(lambda report: self._numbered(path, split, report), path, skip=self._settings.skip_bad_rows)
        if not numbered:
            raise DataError("no examples below the header line", path)
        first_lines: dict[str, int] = {}
        repeated = [(line, example.guid) for line, example in numbered if first_lines.setdefault(example.guid, line) != line]
        if repeated:
            line, guid = repeated[0]
            _LOG.warning(
                "%s: rows with the id of an earlier one: %d; the first: line %d has %r of line %d",
                path,
                len(repeated),
                line,
                guid,
                first_lines[guid],
            )
        return [example for _, example in numbered]

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        return (example for _, example in self._numbered(source, split, report))

    def _numbered(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[tuple[int, SentenceExample]]:
        table = self._table(source)
        texts = self._texts(table)
        if self._learned_texts not in (None, len(texts)):
            raise DataError(f"{OTHER_TEXTS[len(texts)]}; {table.there}", table.path)
        labels = [self._settings.label_column] if self._is_labelled(table, split) else []
        if labels:
            self._label_column.require(table)
        ids = table.ids(self._settings.id_column, needed=split == TEST and self._needs_ids)
        known = dict.fromkeys(self.labels if labels else ())
        alike = {_folded(name): name for name in known}
        missing: collections.Counter[str] = collections.Counter()  # rows by their text that stands for a missing value
        ends = list(itertools.accumulate(map(len, texts)))

        def example(line: int, row: list[Any]) -> tuple[int, SentenceExample]:
            joined_texts = [cells.joined(row[end - len(columns) : end], columns) for end, columns in zip(ends, texts)]
            missing.update(set(filter(cells.is_missing, row[: ends[-1]])))
            if line == 1 and not labels and self._may_have_header and str(row[0]).strip().lower() in _HEADERS:
                _LOG.warning("%s:1: the text is %r; if this line is a header, add --has_header", table.path, row[0])
            try:
                label = self._label_column.label(row[ends[-1]], known) if labels else None
            except tables.RowError as error:
                hint = ""
                if line == 1 and self._may_have_header:
                    hint = "; if this line is a header, add --has_header"
                elif isinstance(error, cells.UnknownLabelError):
                    hint = f"; {self._label_column.remedy(error.label, known, alike)}"
                raise tables.RowError(f"{error}{hint}") from error
            guid = cells.name(row[-1], ids[0]) if ids else f"{split}-{line}"
            return line, SentenceExample(guid, joined_texts[0], joined_texts[1] if len(joined_texts) > 1 else None, label)

        rows = table.read_rows([*itertools.chain.from_iterable(texts), *labels, *ids], example, report)
        return itertools.chain(rows, _warned_of_missing(missing, table.path))

    def _is_labelled(self, table: tables.Table, split: str) -> bool:  # noqa: ARG002  (for other tasks)
        return split != TEST

    @property
    def _has_header(self) -> bool:
        setting = self._settings.has_header
        by_number = all(part.strip().isdecimal() for part in (self._settings.text_a or "").split(","))
        return not by_number if setting is None else setting

    @property
    def _may_have_header(self) -> bool:
        return self._settings.has_header is None and not self._has_header

    def _table(self, source: text_lines.Source) -> tables.Table:
        return tables.open_table(source, form=self._settings.file_format, header=self._has_header)

    def _texts(self, table: tables.Table) -> list[list[str]]:
        if self._settings.text_a:
            by_flag = {"text_a": self._settings.text_a, "text_b": self._settings.text_b}
            named = {flag: _columns(table, flag, columns) for flag, columns in by_flag.items() if columns}
            for flag, columns in named.items():
                for column in columns:
                    table.require(column, f"name that of the text with --{flag}, without a header line by its number")
            return list(named.values())
        usual = usual_texts(table.has)
        if not usual:
            raise DataError(
                f"which column holds the text? Name it with --text_a, a second with --text_b; {table.there}", table.path
            )
        return [[column] for column in usual]


def _warned_of_missing(missing: Mapping[str, int], path: str) -> Iterator[tuple[int, SentenceExample]]:
    """Yields nothing; warns of texts that stand for a missing value, after the rows that were counted."""
    if missing:
        counts = ", ".join(f"{text!r} ({rows})" for text, rows in sorted(missing.items()))
        _LOG.warning("%s: texts that stand for a missing value: %s; leave such a cell empty, or the row out", path, counts)
    yield from ()


def _columns(table: tables.Table, flag: str, value: str) -> list[str]:
    """Returns the columns in a flag: one, or several separated by commas."""
    if table.has(value):
        return [value]
    parts = [part if table.has(part) else part.strip() for part in value.split(",")]
    if "" in parts:
        raise FlagError(f"--{flag}={value}: a name is empty; remove the extra comma")
    return parts


# Labels


@dataclasses.dataclass(frozen=True)
class LabelColumn:
    column: str  # name or number
    kind: str  # one of `bert_tf.tasks.names.KINDS`
    separator: str  # between labels of a cell; JSON may have a list
    bounds: tuple[float, float] | None = None  # inclusive range of a numeric label

    def label(self, cell: object, known: Collection[str]) -> Label:
        """Returns the label of a cell; raises `RowError` if it is empty, of another kind or unknown."""
        if self.kind == REGRESSION:
            return cells.number(cell, self.bounds)
        names = self._names(cell)
        cells.refuse_doubtful((name for name in names if name not in known), _LIST_THEM)
        labels = tuple(cells.known_label(name, known) for name in names)
        return labels if self.kind == MULTI_LABEL else labels[0]

    def require(self, table: tables.Table) -> None:
        remedy = "name that of the label with --label_column"
        if "," in self.column and all(map(table.has, self.column.split(","))):
            remedy = (
                f"one column holds all labels of a row: write the names that apply into its cells (--problem={MULTI_LABEL})"
            )
        table.require(self.column, remedy)

    def remedy(self, label: str, known: Collection[str], alike: Mapping[str, str]) -> str:
        """Returns what to do about an unknown label; `alike` are the known ones by `_folded`."""
        if _folded(label) in alike:
            return f"did you mean {alike[_folded(label)]!r}? A label must be written in the same way in all files"
        if self.kind == CLASSIFICATION and len(known) > _FEW and are_numbers(known):
            return f"numbers are learned with --problem={REGRESSION}"
        return f"if it is intended, {_LIST_THEM}"

    def ambiguous(self, names: Iterable[str]) -> str:
        """Returns what is wrong if a cell of several labels could be read in two ways; empty if none can."""
        name = next((name for name in names if self.kind == MULTI_LABEL and self.separator in name), None)
        holds = f"the label {name!r:.80} holds the separator {self.separator!r}"
        return "" if name is None else f"{holds}: choose another with --label_separator"

    def discover(self, table: tables.Table, *, may_have_header: bool) -> tuple[str, ...]:
        """Returns the sorted labels of a table (numerically if possible), reading it to its end.

        Rows without a usable label are skipped, unless all are: reading the examples reports them. `may_have_header` means
        that the user did not rule out a header: raises `DataError` if the first line looks like one.
        """
        self.require(table)
        bad = tables.BadRows(table.path, skip=False)
        rows = list(table.read_rows([self.column], self._usable, bad))
        counts: collections.Counter[str] = collections.Counter()
        first: tuple[str, ...] = ()
        for line, names in rows:
            counts.update(names)
            if line == 1:
                first = names
        if may_have_header and first and all(counts[name] == 1 for name in first):
            raise DataError(
                f"the label {self.separator.join(first)!r} occurs only in the first line;"
                " if that is a header line, add --has_header, else --nohas_header",
                table.path,
                1,
            )
        self._refuse_too_few(counts, bad, table.path)
        problem = cells.problem_of_bits([names for _, names in rows]) if self.kind == MULTI_LABEL else ""
        if problem:
            raise DataError(f"{problem}; if 0 and 1 are names, {_LIST_THEM}", table.path)
        if self.kind == MULTI_LABEL and all(len(names) < 2 for _, names in rows) and (other := _divider(counts)):
            divided = f"the labels look like several divided by {other!r}: add --label_separator='{other}'"
            raise DataError(f"{divided}; if they are names, {_LIST_THEM}", table.path)
        if problem := self.ambiguous(counts):
            raise DataError(problem, table.path)
        warn_of_labels(counts, table.path)
        return sorted_names(counts)

    def _usable(self, line: int, row: list[Any]) -> tuple[int, tuple[str, ...]]:
        names = self._names(row[0])
        cells.refuse_doubtful(names, _LIST_THEM)
        return line, names

    def _refuse_too_few(self, counts: Mapping[str, int], bad: tables.BadRows, path: str) -> None:
        if len(counts) >= (2 if self.kind == CLASSIFICATION else 1):
            return
        if not counts and bad.count:
            raise bad.of_all()
        what = f"every row has the label {next(iter(counts))!r}" if counts else "no row has a label"
        others = f"; {bad.count} rows cannot be used, the first: {bad.first[0]}" if bad.count else ""
        raise DataError(f"{what} in column {self.column!r}; at least two labels are required{others}", path)

    def _names(self, cell: object) -> tuple[str, ...]:
        """Returns one name, or any number if cells hold several labels."""
        if self.kind != MULTI_LABEL:
            return (cells.name(cell, self.column),)
        if cell is None:
            return ()
        if isinstance(cell, str) and cells.is_list(cell):
            raise tables.RowError(f"the labels {cell!r:.80} are a list written as text: write a{self.separator}b")
        parts = cell.split(self.separator) if isinstance(cell, str) else cell
        if not isinstance(parts, list):
            raise tables.RowError(f"the value in column {self.column!r} is not a list of labels: {cell!r:.80}")
        stripped = [part.strip() if isinstance(part, str) else part for part in parts]
        return cells.distinct(tuple(cells.name(part, self.column) for part in stripped if part not in ("", None)))


def warn_of_labels(counts: Mapping[str, int], source: object) -> None:
    """Warns of likely mistakes: another column than that of the labels, labels with few rows, or one letter from another."""
    if len(counts) > max(_FEW, sum(counts.values()) / 2) and not are_numbers(counts):
        problem = f"{len(counts)} different labels in {sum(counts.values())} rows"
        _LOG.warning("%s: %s: does --label_column name the text, or an id?", source, problem)
        return
    share = min(_RARE_SHARE, 0.5 / max(1, len(counts)))  # lower if there are many labels
    least = max(_RARE, share * sum(counts.values()))
    rare = sorted((count, name) for name, count in counts.items() if count < least)
    if rare:
        listing = ", ".join(f"{name!r:.50} ({count})" for count, name in rare[:_NAMED]) + ", ..." * (len(rare) > _NAMED)
        _LOG.warning("%s: labels with few rows: %s; list the intended labels with --labels", source, listing)
    near = [f"{label!r} ({counts[label]}) and {other!r} ({counts[other]})" for label, other in _near(counts)]
    if near:
        listing = ", ".join(near[:_NAMED]) + ", ..." * (len(near) > _NAMED)
        _LOG.warning("%s: labels one letter apart, or one number, which may be one: %s", source, listing)


def _divider(labels: Collection[str]) -> str | None:
    """A separator that divides the labels into no more distinct parts than labels, so that some recur; None if none does."""
    for separator in SEPARATORS:
        parts = {part.strip() for label in labels for part in label.split(separator)} - {""}
        if len(parts) <= len(labels) and parts != set(labels):
            return separator
    return None


def _near(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields pairs that differ by a letter, a transposition, case or a number's form, but not by a digit (group1, group2)."""
    seen: dict[str, set[str]] = collections.defaultdict(set)  # by a name without one of its letters
    for name in sorted(names):
        folded = _folded(name)
        is_word = _SHORTEST <= len(folded) <= _LONGEST and not _NUMBER.fullmatch(name)
        cut = range(len(folded)) if is_word else ()
        keys = {folded, *(folded[:position] + folded[position + 1 :] for position in cut)}
        others = {other for key in keys for other in seen[key] if _DIGITS.sub("", other) != _DIGITS.sub("", name)}
        others |= {other for other in seen[folded] if _folded(other) == folded}
        yield from ((other, name) for other in sorted(others))
        for key in keys:
            seen[key].add(name)


def _folded(name: str) -> str:
    """A label without case, invisible letters and forms of a letter, a number without its form: 1.0 and 1 are the same."""
    if _NUMBER.fullmatch(name):
        return str(float(name))
    return "".join(letter for letter in unicodedata.normalize("NFKC", name).casefold() if letter not in _INVISIBLE)


def are_numbers(names: Iterable[str]) -> bool:
    return all(map(_NUMBER.fullmatch, names))


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    if are_numbers(names):
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    return tuple(sorted(names))
