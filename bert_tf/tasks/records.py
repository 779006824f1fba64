"""Tables whose rows are no lines: JSON arrays of objects, and Parquet; read part by part."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import ijson

from bert_tf import extras
from bert_tf.errors import DataError, EmptyFileError
from bert_tf.io import documents, encodings, files
from bert_tf.io.documents import DocumentError
from bert_tf.tasks import text_lines

_MAGIC = b"PAR1"
_BATCH = 1024  # rows of Parquet in memory
_PLAIN = (str, bool, int, float, type(None))


def of_array(lines: Iterator[text_lines.Line | DataError], path: str) -> Iterator[Any]:
    """Yields the values of a JSON array that lines hold; raises DataError where it is damaged."""
    is_empty, repeated = True, list[str]()
    values = ijson.items(_Text(lines), "item", use_float=True, map_type=_noting(repeated))
    try:
        for value in values:
            documents.refuse_deep(value)
            if repeated:
                raise DocumentError(f"the key {repeated[0]!r:.80} appears twice")
            is_empty = False
            yield value
    except (ijson.JSONError, UnicodeDecodeError, RecursionError, DocumentError) as error:
        said = error.args[0] if error.args else ""
        said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        words = said.strip().splitlines() or [type(error).__name__]
        raise DataError(f"not a JSON array of rows: {words[0].rstrip('.')}", path) from error
    if is_empty:
        raise EmptyFileError("the JSON array has no rows", path)


def _noting(repeated: list[str]) -> type[dict[str, Any]]:
    """Returns a type of objects that notes repeated keys: the parser is in C, and an exception would break it."""

    class Noting(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            if key in self:
                repeated.append(key)
            super().__setitem__(key, value)

    return Noting


class _Text:
    """Lines as a file of bytes."""

    def __init__(self, lines: Iterator[text_lines.Line | DataError]) -> None:
        self._lines = lines

    def read(self, size: int = -1) -> bytes:
        """Returns the next line, of any length; empty at the end."""
        if size == 0:
            return b""
        line = next(self._lines, None)
        if isinstance(line, DataError):
            raise line
        return b"" if line is None else f"{line.text}\n".encode()


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
            whole = end.enter_context(source.open()) if isinstance(source, text_lines.Elsewhere) else os.fspath(source)
            file = end.enter_context(pyarrow.parquet.ParquetFile(whole, page_checksum_verification=True))
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
    if os.fspath(source) == text_lines.STANDARD_INPUT or path.endswith(".gz"):
        raise DataError("Parquet is read from a plain file, neither a pipe nor compressed", path)
    try:
        begin = files.read_begin(source, encodings.LONGEST)
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
    if not begin:
        raise EmptyFileError("the file is empty", path)
    if not begin.startswith(_MAGIC):
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
