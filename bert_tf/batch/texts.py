"""Files of unlabelled texts: one per line, or columns of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.batch.inputs import CHUNK, chunked, left_out_or_refused
from bert_tf.batch.job import Columns
from bert_tf.errors import FlagError
from bert_tf.head_spec import REGRESSION
from bert_tf.io import files
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tasks.sentence.task import CustomTask
from bert_tf.tasks.settings import CustomSettings

_PAIR = " ||| "  # divides the two texts of a line, as in the published extract_features.py
_TEXT = "text"  # column of a file without columns


@dataclasses.dataclass(frozen=True)
class TextInputs:
    """How to read files of texts; see `inputs.Inputs`.

    The suffix tells the format: .tsv, .csv, .jsonl; any other has a text per line, or a pair separated by ` ||| `. If columns
    are named, .txt is a table, too.
    """

    columns: Columns  # with the formats of `job.TEXT_FILES`
    skip_bad_rows: bool = False  # leaves out unusable rows
    chunk: int | None = None  # texts computed together; None for `inputs.CHUNK`

    def __post_init__(self) -> None:
        columns = self._named_columns
        if columns and self.columns.file_format == tables.LINES:
            raise FlagError(f"--{columns[0]}: --file_format={tables.LINES} reads a text in each line; leave one out")

    @property
    def _named_columns(self) -> list[str]:
        return [name for name in self.columns.given() if name != "file_format"]

    @property
    def chunk_size(self) -> int:
        return self.chunk or CHUNK

    @property
    def numbers(self) -> str | None:
        return None if self.columns.id_column else r"\d+"

    def chunks(
        self, source: str, *, patience_s: float | None = None, report: tables.Report | None = None
    ) -> Iterator[list[Any]]:
        """Ids are those of the file, else line numbers."""
        report = report or left_out_or_refused(source, skip_bad_rows=self.skip_bad_rows)
        return chunked(self._stream, source, report=report, patience_s=patience_s, size=self.chunk)

    def _stream(self, source: text_lines.Source, report: tables.Report) -> Iterator[SentenceExample]:
        if self._has_lines(str(source)):
            table = tables.open_table(source, form=tables.LINES, header=(_TEXT,))
            return table.read_rows([_TEXT], _of_line, report)
        settings = CustomSettings(**{**self.columns.given(), "problem": REGRESSION, "test_file": str(source)})
        examples = CustomTask(settings).stream(source, TEST, report)
        return examples if self.columns.id_column else map(_by_line, examples)

    def _has_lines(self, source: str) -> bool:
        if self.columns.file_format is not None:
            return self.columns.file_format == tables.LINES
        name = files.uncompressed(source)
        return not self._named_columns and (Path(name).suffix.lower() == ".txt" or tables.form_of(name) is None)


def texts_of(line_text: str) -> tuple[str, ...]:
    """The text of a line, or the two of a pair."""
    first, divider, second = line_text.rpartition(_PAIR)
    return (first, second) if divider else (line_text,)


def _of_line(line: int, cells_of_line: list[Any]) -> SentenceExample:
    (line_text,) = cells_of_line
    texts = texts_of(line_text)
    if not all(text.strip() for text in texts):
        raise tables.RowError("the line has no text" if len(texts) == 1 else f"no text beside{_PAIR.rstrip()}")
    checked = [cells.text(text, _TEXT) for text in texts]
    return SentenceExample(str(line), *checked)


def _by_line(example: SentenceExample) -> SentenceExample:
    return dataclasses.replace(example, guid=example.guid.removeprefix(f"{TEST}-"))
