"""Vectors and their texts, as `encode` wrote them, in constant memory."""

from __future__ import annotations

import contextlib
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bert_tf import documents, extras, files
from bert_tf.documents import DocumentError
from bert_tf.errors import DataError
from bert_tf.vectors.files import ENCODING, LENGTHS, ROWS, VECTORS
from bert_tf.vectors.texts import TextInputs

Array = npt.NDArray[Any]
Row = Mapping[str, Any]

_BLOCK = 1 << 13  # vectors that are compared at a time: they stay in the cache
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a member of a zip file: bytes of its name, and of what else is said


class VectorIndex(Protocol):
    """Vectors of texts in a file."""

    @property
    def width(self) -> int:
        """Numbers of a vector."""

    @property
    def encoding(self) -> Mapping[str, Any]:
        """What made them, as `jobs.encode` says it; empty where nothing says it."""

    def blocks(self) -> Iterator[Array]:
        """Yields [n, W] vectors, all in their order."""

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        """Returns what is said of some texts: `id`, `text`, perhaps `text_b`; by number, counted from 0."""


def opened(path: str, texts: TextInputs | None, source: str | None) -> VectorIndex:
    """Opens a file of vectors.

    Args:
      path: .npz, .parquet or .npy.
      texts: how to read the file of the texts of an .npy.
      source: that file; None where it is not given.

    Raises:
      DataError: it cannot be read, or holds no vectors of texts.
    """
    why = files.missing(Path(path))
    if why:
        raise DataError(why, path)
    kind = PurePath(path).suffix.lower()
    if kind not in _OPENED:
        raise DataError(f"is not an index: encode the texts into {', '.join(_OPENED)}", path)
    with _readable_errors(path):
        found = _OPENED[kind](path)
    if isinstance(found, _Npy):
        found.texts, found.source = texts, source
    return found


@contextlib.contextmanager
def _readable_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
    except (ValueError, KeyError, struct.error, zipfile.BadZipFile) as error:
        raise DataError(f"holds no vectors of texts, or is damaged: {error}; encode the texts again", path) from error


def _checked(vectors: Array) -> Array:
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ValueError(f"an array of {vectors.dtype} with {vectors.ndim} axes, not of numbers with 2")
    return vectors


def _blocks_of(vectors: Array) -> Iterator[Array]:
    for start in range(0, len(vectors), _BLOCK):
        yield vectors[start : start + _BLOCK]


class _Npy:
    """An .npy; its texts are in the file that was encoded."""

    texts: TextInputs | None = None
    source: str | None = None

    def __init__(self, path: str) -> None:
        self._path = path
        self._vectors = _checked(np.load(path, mmap_mode="r"))
        self.width = self._vectors.shape[1]
        self.encoding: Mapping[str, Any] = {}
        with contextlib.suppress(OSError, DocumentError, KeyError):
            self.encoding = documents.read_json(f"{path}.job.json")["settings"]

    def blocks(self) -> Iterator[Array]:
        return _blocks_of(self._vectors)

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        if self.texts is None or self.source is None:
            return {number: {"id": str(number + 1)} for number in numbers}
        wanted = set(numbers)
        found: dict[int, Row] = {}
        examples = (example for chunk in self.texts.chunks(self.source) for example in chunk)
        for number, example in enumerate(examples):
            if number in wanted:
                second = {} if example.text_b is None else {"text_b": example.text_b}
                found[number] = {"id": example.guid, "text": example.text_a, **second}
        if len(found) < len(wanted):
            raise DataError(f"has fewer texts than {self._path} has vectors; name the file that was encoded", self.source)
        return found


class _Npz:
    """An .npz of `vectors.files`, whose vectors are read in place."""

    def __init__(self, path: str) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            if f"{LENGTHS}.npy" in archive.namelist():
                raise ValueError("these are vectors of tokens")
            archive.getinfo(ROWS)
            self.encoding: Mapping[str, Any] = documents.json_value(archive.read(ENCODING).decode())
            self._vectors = _checked(_in_place(path, archive.getinfo(f"{VECTORS}.npy")))
        self.width = self._vectors.shape[1]

    def blocks(self) -> Iterator[Array]:
        return _blocks_of(self._vectors)

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        wanted = set(numbers)
        with _readable_errors(self._path), zipfile.ZipFile(self._path) as archive, archive.open(ROWS) as lines:
            return {number: documents.json_value(line.decode()) for number, line in enumerate(lines) if number in wanted}


def _in_place(path: str, member: zipfile.ZipInfo) -> Array:
    """Returns an array of a zip file that is not compressed, as it lies in it."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{member.filename} is compressed")
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        file.seek(sum(_LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))), 1)
        layout: Any = np.lib.format  # typed in some versions of NumPy only
        layout.read_magic(file)
        shape, _, dtype = layout.read_array_header_1_0(file)
        return np.memmap(path, dtype, "r", file.tell(), shape) if shape[0] else np.empty(shape, dtype)


class _Parquet:
    """A .parquet of `vectors.files`."""

    def __init__(self, path: str) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise DataError(f"Parquet needs pyarrow: {extras.install('parquet')}", path) from error
        self._path, self._file = path, pyarrow.parquet.ParquetFile(path)
        schema = self._file.schema_arrow
        self.width = int(schema.field("vector").type.list_size)
        self.encoding: Mapping[str, Any] = documents.json_value((schema.metadata or {})[ENCODING.encode()].decode())

    def blocks(self) -> Iterator[Array]:
        for batch in self._file.iter_batches(_BLOCK, columns=["vector"]):
            yield batch.column(0).flatten().to_numpy(zero_copy_only=False).reshape(-1, self.width)

    def rows(self, numbers: Sequence[int]) -> Mapping[int, Row]:
        wanted, before = set(numbers), 0
        found: dict[int, Row] = {}
        for group in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(group).num_rows
            inside = sorted(number for number in wanted if before <= number < before + count)
            if inside:
                table = self._file.read_row_group(group, columns=["id", "text", "text_b"])
                taken = table.take([number - before for number in inside]).to_pylist()
                found |= {n: {k: v for k, v in row.items() if v is not None} for n, row in zip(inside, taken)}
            before += count
        return found


_OPENED: Mapping[str, Callable[[str], VectorIndex]] = {".npz": _Npz, ".parquet": _Parquet, ".npy": _Npy}
