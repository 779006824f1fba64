"""Custom data as a task: tables with any columns; labels are discovered in the training file."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import CHOICE, CLASSIFICATION, CONTRASTIVE, REGRESSION, SIMILARITY, SPAN, TAGS
from bert_tf.settings import setting
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.label_column import LabelColumn
from bert_tf.tasks.sentence.example import KINDS, USUAL_TEXTS, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics

NAME = "custom"
PROBLEMS = (*KINDS, SPAN, TAGS, CHOICE, SIMILARITY, CONTRASTIVE)

_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs
_USUAL_NAMES = {name for names in USUAL_TEXTS for name in names}


@dataclasses.dataclass(frozen=True)
class CustomSettings:
    """Flags for custom data; the fields are flags.

    A column is a name, or a number counted from 1. A text may be several columns separated by commas, joined with a
    space; if a column has exactly that name, commas included, it is that column.
    """

    train_file: str | None = setting(None, "TSV (no quoting), CSV or JSON lines; the suffix says which, .gz may follow")
    dev_file: str | None = setting(None, "the same for evaluation")
    test_file: str | None = setting(None, "the same for prediction; needs no labels")
    text_a: str | None = setting(
        None, "column, or several joined by a space: title,body or 1,3; else text, sentence, text_a + b, sentence1 + 2"
    )
    text_b: str | None = setting(None, "the same of the second text, where --text_a is given and there are two")
    label_column: str = setting("label", "column of the label")
    id_column: str | None = setting(None, "column of the ids that predictions carry; else split and line")
    file_format: str | None = setting(None, "tsv, csv or jsonl, where the suffix does not say it", choices=tables.FORMATS)
    has_header: bool | None = setting(None, "whether the first line names the columns; else yes, unless --text_a is a number")
    problem: str = setting(
        CLASSIFICATION, "what is learned, as regression or choice; docs/commands.md has all", choices=PROBLEMS
    )
    labels: str | None = setting(
        None, "their names with commas, the position is the class (F1: of the second of two); else those of training"
    )
    label_separator: str = setting(",", "what stands between the labels of a cell with multi_label; JSON may have a list")
    skip_bad_rows: bool = setting(False, "of any task: leave out rows that cannot be used; else they are listed and refused")


FILES = ("train_file", "dev_file", "test_file")
SKIP = "skip_bad_rows"


class CustomTask:
    """A sentence task over the files in the settings; `data_dir` is ignored."""

    name, reads_folder = NAME, False

    def __init__(self, settings: CustomSettings, labels: Sequence[str] | None = None) -> None:
        """Checks that the settings are consistent; reads no file yet.

        Args:
          settings: the flags.
          labels: class names by index from a trained model; otherwise those of the settings or of the training file.

        Raises:
          FlagError: the settings contradict each other.
        """
        self._settings = settings
        self._files = {TRAIN: settings.train_file, DEV: settings.dev_file, TEST: settings.test_file}
        self._label_column = LabelColumn(settings.label_column, settings.problem, settings.label_separator)
        listed = listed_labels(settings)
        self._given_labels = tuple(labels or listed)
        if listed and set(listed) != set(self._given_labels):
            raise FlagError(f"--labels={settings.labels}: the model was trained to tell {', '.join(self._given_labels)}")
        if settings.text_b and not settings.text_a:
            raise FlagError("--text_b names the second text; name the first with --text_a")
        if not settings.label_separator:
            raise FlagError("--label_separator is empty")
        for purpose in (TRAIN, DEV):
            if self._files[purpose] == text_lines.STANDARD_INPUT:
                raise FlagError(f"--{purpose}_file=-: this file is read more than once, a pipe is not")

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Label names from the arguments, else from the training file, see `LabelColumn.discover`; empty for regression.

        Raises:
          DataError: the training file cannot be read or has too few labels.
          FlagError: there are neither listed labels nor a training file.
        """
        if self._given_labels or self._settings.problem == REGRESSION:
            return self._given_labels
        if not self._settings.train_file:
            raise FlagError("--labels=a,b,c is required where no --train_file shows which there are")
        return self._label_column.discover(self._table(self._settings.train_file), may_have_header=self._may_have_header)

    @functools.cached_property
    def family(self) -> SentenceFamily:
        """Sentence family with the kind of label in the settings.

        Raises:
          BertError: as `labels`.
        """
        kind = self._settings.problem
        return SentenceFamily(self.labels, kind, usual_metrics(kind, self.labels), self._settings.label_separator)

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        self.file(data_dir, purpose)
        return (purpose,)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:  # noqa: ARG002  (the protocol's)
        path = self._files[split]
        if not path:
            raise FlagError(f"--{split}_file is required with --task_name={NAME}")
        return Path(path)

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> list[SentenceExample]:
        path = self.file(data_dir, split)
        numbered = tables.usable(lambda report: self._numbered(path, split, report), path, skip=self._settings.skip_bad_rows)
        if not numbered:
            raise DataError("no examples below the header line", path)
        first_lines: dict[str, int] = {}
        repeated = [(line, one.guid) for line, one in numbered if first_lines.setdefault(one.guid, line) != line]
        if repeated:
            line, guid = repeated[0]
            _LOG.warning(
                "%s: rows with the id of an earlier one: %d; the first: line %d has %r of line %d",
                *(path, len(repeated), line, guid, first_lines[guid]),
            )
        return [example for _, example in numbered]

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        """Reads a file with the columns of the settings, see `Task.stream`; ids default to split and line."""
        return (example for _, example in self._numbered(source, split, report))

    def published_name(self, split: str) -> str:
        return split

    def submission(self, split: str) -> None:
        """None: no server accepts it."""

    def _numbered(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[tuple[int, SentenceExample]]:
        table = self._table(source)
        texts = self._texts(table)
        labels = [self._settings.label_column] if self._is_labelled(table, split) else []
        if labels:
            self._label_column.require(table)
        ids = [self._settings.id_column] if self._settings.id_column else []
        if split != TEST and not all(map(table.has, ids)):
            ids = []  # they are for predictions
        known = self.labels if labels else ()
        ends = list(itertools.accumulate(map(len, texts)))

        def example(line: int, row: list[Any]) -> tuple[int, SentenceExample]:
            found = [cells.joined(row[end - len(columns) : end], columns) for end, columns in zip(ends, texts)]
            if line == 1 and not labels and self._may_have_header and str(row[0]).strip().lower() in _USUAL_NAMES:
                _LOG.warning("%s:1: the text is %r; if this line is a header, add --has_header", table.path, row[0])
            try:
                label = self._label_column.label(row[ends[-1]], known) if labels else None
            except tables.RowError as error:
                hint = ""
                if line == 1 and self._may_have_header:
                    hint = "; if this line is a header, add --has_header"
                elif isinstance(error, cells.UnknownLabelError):
                    hint = f"; {self._label_column.remedy(known)}"
                raise tables.RowError(f"{error}{hint}") from error
            guid = cells.name(row[-1], ids[0]) if ids else f"{split}-{line}"
            return line, SentenceExample(guid, found[0], found[1] if len(found) > 1 else None, label)

        return table.read([*itertools.chain.from_iterable(texts), *labels, *ids], example, report)

    def _is_labelled(self, table: tables.Table, split: str) -> bool:  # noqa: ARG002  (for other tasks)
        return split != TEST

    @property
    def _has_header(self) -> bool:
        given = self._settings.has_header
        by_number = all(part.strip().isdecimal() for part in (self._settings.text_a or "").split(","))
        return not by_number if given is None else given

    @property
    def _may_have_header(self) -> bool:
        return self._settings.has_header is None and not self._has_header

    def _table(self, source: text_lines.Source) -> tables.Table:
        return tables.open_table(source, form=self._settings.file_format, header=self._has_header)

    def _texts(self, table: tables.Table) -> list[list[str]]:
        if self._settings.text_a:
            named = {"text_a": self._settings.text_a, "text_b": self._settings.text_b}
            return [_columns(table, flag, columns) for flag, columns in named.items() if columns]
        fitting = [columns for columns in USUAL_TEXTS if all(map(table.has, columns))]
        if len(fitting) != 1:
            raise DataError(
                f"which column holds the text? Name it with --text_a, a second with --text_b; {table.there}", table.path
            )
        return [[column] for column in fitting[0]]


def _columns(table: tables.Table, flag: str, named: str) -> list[str]:
    """Returns the columns in a flag: one, or several separated by commas."""
    if table.has(named):
        return [named]
    parts = [part if table.has(part) else part.strip() for part in named.split(",")]
    if "" in parts:
        raise FlagError(f"--{flag}={named}: a name is empty; there is a comma too many")
    return parts


def listed_labels(settings: CustomSettings) -> list[str]:
    """Returns the labels of --labels, empty if not set; raises `FlagError` for duplicates or too few."""
    if settings.labels is None:
        return []
    names = [name.strip() for name in settings.labels.split(",")]
    if settings.problem == REGRESSION:
        raise FlagError(f"--labels: with --problem={REGRESSION} labels are numbers, none are listed")
    if "" in names or len(set(names)) < len(names):
        raise FlagError(f"--labels={settings.labels}: an empty or repeated name")
    if settings.problem == CLASSIFICATION and len(names) < 2:
        raise FlagError(f"--labels={settings.labels}: two at least, with commas")
    return names
