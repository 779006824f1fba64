"""Tables whose rows are no lines: JSON arrays of objects, and Parquet; read part by part."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any, cast

from bert_tf import extras
from bert_tf.errors import DataError, EmptyFileError
from bert_tf.io import documents, encodings, files
from bert_tf.io.documents import DocumentError, NotJsonError
from bert_tf.tasks import text_lines

_BLANKS = re.compile(r"\s*")
_SHOWN = 20  # characters of a text in a message
_LINES = 64  # of an array, read at a time
_BATCH = 1024  # rows of Parquet in memory
_PLAIN = (str, bool, int, float, type(None))


def of_array(lines: Iterator[text_lines.Line | DataError], path: str) -> Iterator[Any]:
    """Yields the values of a JSON array that lines hold; raises DataError where it is damaged."""
    text = _Text(lines)
    text.skip("[")
    for number in itertools.count(1):
        if text.skip("]"):
            break
        try:
            if number > 1 and not text.skip(","):
                raise DocumentError(f"not JSON: {text.begin!r} where a comma or the end of the array is expected")
            yield text.value()
        except DocumentError as error:
            raise DataError(f"row {number}: {error.problem}", path) from error
    if number == 1:
        raise EmptyFileError("the JSON array has no rows", path)
    if text.skip(""):
        raise DataError(f"more text after the JSON array: {text.begin!r}", path)


class _Text:
    """The text of lines, value by value."""

    def __init__(self, lines: Iterator[text_lines.Line | DataError]) -> None:
        self._lines = lines
        self._text, self._at = "", 0  # what is read, and the place of the first character that is not used

    @property
    def begin(self) -> str:
        return self._text[self._at : self._at + _SHOWN].strip()

    def skip(self, sign: str) -> bool:
        """Whether a sign follows, after blanks; it is read. The empty sign is any."""
        self._pass_blanks()
        while self._at == len(self._text) and self._read(_LINES):
            self._pass_blanks()
        follows = self._at < len(self._text) and self._text.startswith(sign, self._at)
        self._at += len(sign) * follows
        return follows

    def _pass_blanks(self) -> None:
        self._at = cast("re.Match[str]", _BLANKS.match(self._text, self._at)).end()

    def value(self) -> Any:
        """Reads the next value; raises DocumentError. It may need any number of lines, so each try adds twice as many."""
        self.skip("")
        count = _LINES
        while True:
            try:
                value, self._at = documents.json_at(self._text, self._at)
            except NotJsonError as error:
                if not error.is_cut or not self._read(count):
                    raise
                count *= 2
            else:
                return value

    def _read(self, count: int) -> bool:
        added = list(itertools.islice(self._lines, count))
        for line in added:
            if isinstance(line, DataError):
                raise line
        self._text = self._text[self._at :] + "".join(f"{line.text}\n" for line in added if isinstance(line, text_lines.Line))
        self._at = 0
        return bool(added)


def of_parquet(source: text_lines.Source, path: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a Parquet file; DataError if it is damaged or a pipe, or pyarrow is missing."""
    if not isinstance(source, text_lines.Elsewhere):
        _refuse_others(source, path)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(f"Parquet needs pyarrow: {extras.install('parquet')}; or save the table as JSON lines", path) from error
    with contextlib.ExitStack() as end:
        try:
            parquet_source = end.enter_context(source.open()) if isinstance(source, text_lines.Elsewhere) else os.fspath(source)
            file = end.enter_context(pyarrow.parquet.ParquetFile(parquet_source, page_checksum_verification=True))
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise DataError("two columns have the same name", path)
            if not file.metadata.num_rows:
                raise EmptyFileError("the file has no rows", path)
            for batch in file.iter_batches(_BATCH):
                yield from map(_plain, batch.to_pylist())
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(f"cannot read the Parquet file: {words[0][:200]}", path) from error


def _refuse_others(source: text_lines.Source, path: str) -> None:
    if os.fspath(source) == text_lines.STANDARD_INPUT or files.is_compressed(path):
        raise DataError("Parquet is read from a plain file, neither a pipe nor compressed", path)
    try:
        begin = files.read_begin(source, encodings.LONGEST)
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
    if not begin:
        raise EmptyFileError("the file is empty", path)
    if not begin.startswith(encodings.PARQUET):
        raise DataError(f"not Parquet: {encodings.instead_of_text(begin) or 'its first bytes are others'}", path)


def _plain(value: Any) -> Any:
    """Returns a value as JSON may have it: dates and decimals as texts, bytes as their text if they are one."""
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if isinstance(value, (*_PLAIN, bytes)) else str(value)
