"""Custom sentences as a task: tables with any columns; labels are discovered in the training file."""

from __future__ import annotations

import functools
import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST
from bert_tf.tasks.custom import NAME, CustomSettings, listed_labels
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.label_column import LabelColumn
from bert_tf.tasks.sentence.example import USUAL_TEXTS, SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily, usual_metrics

_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs
_USUAL_NAMES = {name for names in USUAL_TEXTS for name in names}


class CustomTask(FileTask):
    """Sentences in the files of the settings; `data_dir` is ignored."""

    def __init__(self, settings: CustomSettings, labels: Sequence[str] | None = None) -> None:
        """Reads no file yet; `labels` are those of a trained model, by index. FlagError if settings contradict each other."""
        super().__init__(NAME, self._sentences, self.stream, settings, {})
        self._settings = settings
        self._label_column = LabelColumn(settings.label_column, settings.problem, settings.label_separator)
        listed = listed_labels(settings)
        self._given_labels = tuple(labels or listed)
        if listed and set(listed) != set(self._given_labels):
            raise FlagError(f"--labels={settings.labels}: the model was trained to tell {', '.join(self._given_labels)}")
        if settings.text_b and not settings.text_a:
            raise FlagError("--text_b names the second text; name the first with --text_a")
        if not settings.label_separator:
            raise FlagError("--label_separator is empty")

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Label names from the arguments, else from the training file, see `LabelColumn.discover`; empty for regression."""
        if self._given_labels or self._settings.problem == REGRESSION:
            return self._given_labels
        if not self._settings.train_file:
            raise FlagError("--labels=a,b,c is required where no --train_file shows which there are")
        return self._label_column.discover(self._table(self._settings.train_file), may_have_header=self._may_have_header)

    def _sentences(self) -> SentenceFamily:
        kind = self._settings.problem
        return SentenceFamily(self.labels, kind, usual_metrics(kind, self.labels), self._settings.label_separator)

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
        return (example for _, example in self._numbered(source, split, report))

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
