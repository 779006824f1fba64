"""The archive that `torch.save` writes (pytorch_model.bin): a zip file of uncompressed records, one of which is a pickle.

Its directory is read here, and not by `zipfile`, which unpacks whatever it finds: records are stored as they are, lie within
the file, and take no more bytes than it has. Layout: PKWARE's APPNOTE.TXT, 4.3.7 (record), 4.3.12 (directory), 4.3.16 (end).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from bert_tf.checkpoints.weight_files import Entry
from bert_tf.errors import CheckpointError
from bert_tf.extensions.torch_files import pickled
from bert_tf.extensions.torch_files.pickled import StoredTensor
from bert_tf.io import files

Array = npt.NDArray[Any]

_RECORD, _DIRECTORY, _END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_LOCATOR, _END_64 = b"PK\6\7", b"PK\6\6"
_IN_64 = 0xFFFFFFFF  # the value is in the extra field
_MOST_RECORDS = 100_000
_MOST_DIRECTORY = 1 << 26  # bytes
_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # how files of PyTorch before 1.6 begin
_PICKLE = "/data.pkl"
_SHARING = 4  # tensors may have this many times the bytes of the file, since some share them
_ADVICE = "save the weights as safetensors, or again with torch.save of PyTorch 1.6 or newer"


class _Record(NamedTuple):
    header: int  # where its own header is
    size: int
    crc: int


class _DamagedError(ValueError):
    pass


class TorchArchive:
    """The tensors of one file: names and shapes at once, values when they are asked for."""

    def __init__(self, path: Path) -> None:
        """Raises CheckpointError for any file but one of tensors."""
        self._path = path
        self._last: tuple[str, Array] | None = None  # the storage that was read last, as bytes
        with _Opened(self._path) as file:
            begin = file.read(len(_LEGACY))
            if begin == _LEGACY:
                raise CheckpointError(f"{path}: written by PyTorch before 1.6, in a form that is not read; {_ADVICE}")
            self._records = dict(_directory(file))
            self._root = next((name.removesuffix(_PICKLE) for name in self._records if name.endswith(_PICKLE)), None)
            if self._root is None:
                raise _DamagedError("it holds no data.pkl")
            order = self._records.get(f"{self._root}/byteorder")
            if order is not None and _content(file, order, most=16) != b"little":
                raise _DamagedError("its bytes are not little-endian")
            record = self._records[self._root + _PICKLE]
            self._tensors = pickled.tensors(_content(file, record, most=pickled.LARGEST))
        self.entries: Mapping[str, Entry] = {
            name: Entry(tensor.shape, tensor.storage.dtype) for name, tensor in self._tensors.items()
        }
        self._check_sizes()

    def read(self, name: str) -> Array:
        tensor = self._tensors[name]
        dtype = _dtype(tensor.storage.dtype)
        values = self._storage(tensor).view(dtype)[: tensor.storage.elements]
        strides = [stride * dtype.itemsize for stride in tensor.strides]
        view = np.lib.stride_tricks.as_strided(values[tensor.offset :], tensor.shape, strides, writeable=False)
        return np.array(view, order="C")

    def _storage(self, tensor: StoredTensor) -> Array:
        key = tensor.storage.key
        if self._last is None or self._last[0] != key:
            with _Opened(self._path) as file:
                record = self._records[self._name(key)]
                self._last = key, np.frombuffer(_content(file, record, most=record.size), np.uint8)
        values = self._last[1]
        itemsize = _dtype(tensor.storage.dtype).itemsize
        return values[: len(values) // itemsize * itemsize]

    def _check_sizes(self) -> None:
        """Storages have the bytes that tensors say, and tensors, together, not many times the bytes of the file."""
        total = 0
        for name, tensor in self._tensors.items():
            itemsize = _dtype(tensor.storage.dtype).itemsize
            record = self._records.get(self._name(tensor.storage.key))
            if record is None or tensor.storage.elements * itemsize > record.size:
                available = "none" if record is None else f"{record.size} bytes"
                raise CheckpointError(
                    f"{self._path}: damaged weights: {name!r:.80} needs {tensor.storage.elements * itemsize} bytes,"
                    f" there are {available}; fetch them again"
                )
            total += tensor.elements * itemsize
        if total > _SHARING * self._path.stat().st_size:
            raise CheckpointError(
                f"{self._path}: its tensors would take {total} bytes, many times those of the file; {_ADVICE}"
            )

    def _name(self, key: str) -> str:
        return f"{self._root}/data/{key}"


class _Opened:
    """The file, opened; what is wrong with it becomes a CheckpointError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> BinaryIO:
        try:
            self._file = files.open_plain(self._path)
        except OSError as error:
            raise CheckpointError(f"{self._path}: cannot read the weights: {files.reason(error)}") from error
        return self._file

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        self._file.close()
        if isinstance(error, pickled.RefusedError):
            raise CheckpointError(f"{self._path}: not weights alone: {error}; {_ADVICE}") from error
        if isinstance(error, (_DamagedError, UnicodeDecodeError, struct.error)):
            raise CheckpointError(f"{self._path}: damaged weights: {error}; fetch them again") from error
        if isinstance(error, OSError):
            raise CheckpointError(f"{self._path}: cannot read the weights: {files.reason(error)}") from error


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _directory(file: BinaryIO) -> Iterator[tuple[str, _Record]]:
    """Yields the records by name. The comment at the end is empty, as torch.save leaves it."""
    end = file.seek(0, 2)
    count, size, start = _end(file, end)
    if count > _MOST_RECORDS or size > _MOST_DIRECTORY:
        raise _DamagedError(f"a directory of {count} records and {size} bytes")
    if start + size > end:
        raise _DamagedError("its directory lies outside of it")
    data, offset, total = _at(file, start, size), 0, 0
    for _ in range(count):
        if data[offset : offset + 4] != _DIRECTORY:
            raise _DamagedError("no directory where one should be")
        method, crc, packed, length, name_length, extra_length, comment_length = struct.unpack_from(
            "<10xH4xIII3H", data, offset
        )
        header = struct.unpack_from("<I", data, offset + 42)[0]
        begin = offset + 46
        name = _slice(data, begin, name_length).decode()
        extra = _slice(data, begin + name_length, extra_length)
        length, packed, header = _in_64(extra, (length, packed, header))
        if method or packed != length:
            raise _DamagedError(f"{name!r:.80} is compressed, which torch.save does not do")
        total += length
        if header + length > end or total > end:
            raise _DamagedError(f"{name!r:.80} lies outside of it")
        yield name, _Record(header, length, crc)
        offset = begin + name_length + extra_length + comment_length


def _end(file: BinaryIO, end: int) -> tuple[int, int, int]:
    """Number of records, bytes and place of the directory."""
    tail = _at(file, max(end - 42, 0), min(end, 42))
    if tail[-22:-18] != _END:
        raise _DamagedError("it does not end as a zip file of torch.save")
    count, size, start = struct.unpack("<HII", tail[-12:-2])
    if count < 0xFFFF and _IN_64 not in (size, start):
        return count, size, start
    if tail[:4] != _LOCATOR:
        raise _DamagedError("the place of its directory is missing")
    data = _at(file, struct.unpack("<8xQ4x", tail[:20])[0], 56)
    if data[:4] != _END_64:
        raise _DamagedError("the place of its directory is missing")
    count, size, start = struct.unpack("<32x3Q", data)
    return count, size, start


def _in_64(extra: bytes, values: tuple[int, ...]) -> tuple[int, ...]:
    """Replaces values that do not fit in 32 bits by those of the extra field 1, which has only these, in order."""
    offset = 0
    while offset + 4 <= len(extra) and _IN_64 in values:
        kind, size = struct.unpack_from("<HH", extra, offset)
        if kind == 1:
            numbers = iter(struct.unpack(f"<{size // 8}Q", _slice(extra, offset + 4, size // 8 * 8)))
            return tuple(next(numbers, value) if value == _IN_64 else value for value in values)
        offset += 4 + size
    return values


def _content(file: BinaryIO, record: _Record, *, most: int) -> bytes:
    if record.size > most:
        raise _DamagedError(f"a record of {record.size} bytes, where at most {most} are expected")
    header = _at(file, record.header, 30)
    if header[:4] != _RECORD:
        raise _DamagedError("no record where one should be")
    data = _at(file, record.header + 30 + sum(struct.unpack("<26xHH", header)), record.size)
    if zlib.crc32(data) != record.crc:
        raise _DamagedError("the checksum of a record differs")
    return data


def _at(file: BinaryIO, start: int, size: int) -> bytes:
    if start >= 1 << 62:
        raise _DamagedError("it ends too early")
    file.seek(start)
    data = file.read(size)
    if len(data) < size:
        raise _DamagedError("it ends too early")
    return data


def _slice(data: bytes, start: int, size: int) -> bytes:
    part = data[start : start + size]
    if len(part) < size:
        raise _DamagedError("its directory ends too early")
    return part
