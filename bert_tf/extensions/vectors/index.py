"""Reads vectors and texts written by `encode`, in constant memory."""

from __future__ import annotations

import contextlib
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Union

import numpy as np
import numpy.typing as npt

from bert_tf import extras
from bert_tf.batch.job import Columns, ModelOverrides, TextOverrides
from bert_tf.batch.texts import TextInputs
from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.vectors.files import ENCODING, LENGTHS, ROWS, VECTORS
from bert_tf.extensions.vectors.options import layer_numbers
from bert_tf.head_spec import POOLINGS
from bert_tf.io import documents, files
from bert_tf.io.log_form import log
from bert_tf.settings import read_settings, setting_names

Array = npt.NDArray[Any]
Row = Mapping[str, Any]

_BLOCK = 1 << 13  # vectors that are compared at a time: they stay in the cache
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip member: bytes of its name and of its extra field
_LARGEST_ENCODING = 1 << 20  # bytes


def opened(path: str, source: str | None) -> VectorIndex:
    """Opens .npz, .parquet or .npy; `source` is the file of texts that an .npy was made from.

    DataError if unreadable or the texts do not belong to it, FlagError if it has texts of its own.
    """
    why = files.missing(Path(path))
    if why:
        raise DataError(why, path)
    kind = PurePath(path).suffix.lower()
    if kind not in _OPENED:
        raise DataError(f"is not an index: encode the texts into {', '.join(_OPENED)}", path)
    with readable_errors(path):
        index = _OPENED[kind](path)
    if source is not None:
        if not isinstance(index, _Npy):
            raise FlagError(f"--texts={source}: {path} holds its texts; leave the flag out")
        index.take(source)
    elif isinstance(index, _Npy):
        log.warning("%s: holds no ids; those shown are places in it, from 1: name the file of its texts with --texts", path)
    return index


@contextlib.contextmanager
def readable_errors(path: str) -> Iterator[None]:
    """Converts errors of a damaged index to `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
    # EOFError and RuntimeError are what `zipfile` raises for members that end early, or are encrypted.
    except (ValueError, KeyError, EOFError, RuntimeError, struct.error, zipfile.BadZipFile) as error:
        raise DataError(f"holds no vectors of texts, or is damaged: {error}; encode the texts again", path) from error


def _mapped(path: str, start: int, size: int) -> Array:
    """Maps an .npy at a byte offset and size of a file; checks its header before any mapping or allocation.

    ValueError unless it holds vectors and has the size that its header states.
    """
    with open(path, "rb") as file:
        file.seek(start)
        shape, fortran_order, dtype = _array_header(file)
        data_start = file.tell()
    if len(shape) != 2 or dtype.kind != "f":
        raise ValueError(f"an array of {dtype} with {len(shape)} axes, not of numbers with 2")
    remaining = start + size - data_start
    if min(shape) < 1 or math.prod(shape) * dtype.itemsize != remaining:
        raise ValueError(f"{shape[0]} vectors of {shape[1]} numbers ({dtype}) are announced, but {remaining} bytes follow")
    return np.memmap(path, dtype, "r", data_start, shape, "F" if fortran_order else "C")


def _array_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    layout: Any = np.lib.format  # typed in some versions of NumPy only
    try:
        read = {(1, 0): layout.read_array_header_1_0, (2, 0): layout.read_array_header_2_0}[layout.read_magic(file)]
        header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    except OSError:
        raise
    except Exception as error:  # NumPy evaluates the header as Python, which may raise anything
        raise ValueError("the header of an array is missing or damaged") from error
    return header


def _blocks_of(vectors: Array) -> Iterator[Array]:
    return (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))


def _encoding(record: Any) -> Mapping[str, Any]:
    if record == {}:
        return {}
    try:
        layer_numbers(record["layers"])
        read_settings(
            ModelOverrides, {name: record[name] for name in setting_names(TextOverrides) if record.get(name) is not None}
        )
        if record["pooling"] not in POOLINGS or not isinstance(record.get("checkpoint"), (str, type(None))):
            raise ValueError("pooling or checkpoint is unknown")
        _columns(record)
        if not isinstance(record.get("skip_bad_rows", False), bool):
            raise ValueError("skip_bad_rows must be true or false")
    except (FlagError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"unusable record of what made the vectors: {error}") from error
    encoding: Mapping[str, Any] = record
    return encoding


def _columns(encoding: Mapping[str, Any]) -> Columns:
    """Of the file that was encoded."""
    columns = {name: value for name, value in encoding.get("columns", {}).items() if name in setting_names(Columns)}
    return read_settings(Columns, columns)


def _row(row: Any) -> Row:
    if not isinstance(row, dict) or not all(isinstance(row.get(name, ""), str) for name in ("text", "text_b")):
        raise ValueError(f"not a text: {row!r:.80}")
    if not isinstance(row.get("id"), str):
        raise ValueError(f"a text without an id: {row!r:.80}")
    return row


class _Npy:
    """An .npy; its texts are in the encoded file."""

    def __init__(self, path: str) -> None:
        size = Path(path).stat().st_size
        self._path, self._source, self._texts = path, "", TextInputs(Columns())
        self._vectors = _mapped(path, 0, size)
        self.width = self._vectors.shape[1]
        state: Any = {}
        with contextlib.suppress(FileNotFoundError):
            state = documents.parse_json(documents.read_text(f"{path}.job.json"), has_paths=True)
        is_of_this = isinstance(state, dict) and state.get("size") == size  # others may have rewritten the file
        self.encoding = _encoding(state.get("settings", {}) if is_of_this else {})

    def take(self, source: str) -> None:
        """Reads texts as encoded; DataError if the file is another one."""
        self._source = source
        wanted = self.encoding.get("input_sha256")
        if wanted is None:
            return
        with readable_errors(source):
            if files.digest(source) != wanted:
                raise DataError(f"is not the file that became {self._path}, or was changed; name that one", source)
        self._texts = TextInputs(_columns(self.encoding), self.encoding.get("skip_bad_rows", False))

    def blocks(self) -> Iterator[Array]:
        return _blocks_of(self._vectors)

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        if not self._source:
            return {number: {"id": str(number + 1)} for number in numbers}
        wanted, count = set(numbers), 0
        rows_by_number: dict[int, Row] = {}
        for count, example in enumerate((text for chunk in self._texts.chunks(self._source) for text in chunk), 1):
            if count - 1 in wanted:
                second = {} if example.text_b is None else {"text_b": example.text_b}
                rows_by_number[count - 1] = {"id": example.guid, "text": example.text_a, **second}
        if count != len(self._vectors):
            problem = f"has {count} texts, but {self._path} has {len(self._vectors)} vectors; name the file that was encoded"
            raise DataError(problem, self._source)
        return rows_by_number


class _Npz:
    """An .npz of `vectors.files`, mapped in place."""

    def __init__(self, path: str) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            if f"{LENGTHS}.npy" in archive.namelist():
                raise ValueError("these are vectors of tokens")
            vectors, encoding, rows = map(archive.getinfo, (f"{VECTORS}.npy", ENCODING, ROWS))
            compressed = [member.filename for member in (vectors, encoding, rows) if member.compress_type != zipfile.ZIP_STORED]
            if compressed:
                raise ValueError(f"{compressed[0]} is compressed")
            if encoding.file_size > _LARGEST_ENCODING:
                raise ValueError(f"{ENCODING} has {encoding.file_size} bytes")
            self.encoding = _encoding(documents.json_value(archive.read(encoding).decode()))
        self._start = _start(path, vectors)
        self._vectors = _mapped(path, self._start, vectors.file_size)
        if not self._vectors.flags.c_contiguous:
            raise ValueError(f"{VECTORS}.npy is in Fortran order; save it in C order")
        self._unchecked_sum: int | None = vectors.CRC
        self.width = self._vectors.shape[1]

    def blocks(self) -> Iterator[Array]:
        with open(self._path, "rb") as file:
            file.seek(self._start)
            header = file.read(self._vectors.offset - self._start)  # type: ignore[attr-defined]
        checksum = zlib.crc32(header)
        for block in _blocks_of(self._vectors):
            if self._unchecked_sum is not None:
                checksum = zlib.crc32(block.data, checksum)
            yield block
        if self._unchecked_sum not in (None, checksum):
            raise ValueError(f"the checksum of {VECTORS}.npy is another one")
        self._unchecked_sum = None  # one pass is enough

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        wanted, count = set(numbers), 0
        rows_by_number: dict[int, Row] = {}
        with zipfile.ZipFile(self._path) as archive, archive.open(ROWS) as lines:
            for count, line in enumerate(lines, 1):
                if count - 1 in wanted:
                    rows_by_number[count - 1] = _row(documents.json_value(line.decode()))
        if count != len(self._vectors):
            raise ValueError(f"{ROWS} has {count} texts, {VECTORS}.npy {len(self._vectors)} vectors")
        return rows_by_number


def _start(path: str, member: zipfile.ZipInfo) -> int:
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        return file.seek(sum(_LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))), 1)


class _Parquet:
    """A .parquet of `vectors.files`."""

    def __init__(self, path: str) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise DataError(f"Parquet needs pyarrow: {extras.install('parquet')}", path) from error
        self._file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        schema = self._file.schema_arrow
        vector = schema.field("vector").type
        if not (pyarrow.types.is_fixed_size_list(vector) and pyarrow.types.is_floating(vector.value_type)):
            raise ValueError(f"its vectors are of the type {vector}")
        self.width = int(vector.list_size)
        self.encoding = _encoding(documents.json_value((schema.metadata or {})[ENCODING.encode()].decode()))

    def blocks(self) -> Iterator[Array]:
        for batch in self._file.iter_batches(_BLOCK, columns=["vector"]):
            (vectors,) = batch.columns
            if vectors.null_count:  # `flatten` drops them, which would shift all later rows
                raise ValueError("a row has no vector")
            yield vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, self.width)

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        wanted, before = set(numbers), 0
        rows_by_number: dict[int, Row] = {}
        for group in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(group).num_rows
            inside = sorted(number for number in wanted if before <= number < before + count)
            if inside:
                table = self._file.read_row_group(group, columns=["id", "text", "text_b"])
                taken = table.take([number - before for number in inside]).to_pylist()
                rows_by_number |= {n: _row({k: v for k, v in row.items() if v is not None}) for n, row in zip(inside, taken)}
            before += count
        return rows_by_number


# Of each: `width`, numbers of a vector; `encoding`, model and settings as `command` records them, empty if
# unknown; `blocks`, vectors [n, W] in order; `rows`, id, text and perhaps text_b by number from 0.
VectorIndex = Union[_Npy, _Npz, _Parquet]
_OPENED: Mapping[str, Callable[[str], VectorIndex]] = {".npz": _Npz, ".parquet": _Parquet, ".npy": _Npy}
