"""Append-only columns on disk with checkpoints, memory-mapped once complete.

A folder holds a file per column and a record. What a killed process wrote after its last checkpoint is cut off, and
the next process continues there.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.errors import DataError
from bert_tf.io import atomic, documents, files

Array = npt.NDArray[Any]
Types = Mapping[str, "np.dtype[Any]"]  # of the columns, by the names of their files

_RECORD, _NOTE = "record.json", "unfinished.json"
_NOTED_EVERY = 16  # appends


class Appending:
    """Writes the columns of a folder.

    `sizes` counts the values of each column; `state` is what the writer needs to resume, as of the last checkpoint.
    """

    def __init__(self, folder: Path, key: str, types: Types, state: Mapping[str, Any], *, goes_on: bool = True) -> None:
        """Resumes where a process with the same key stopped, else starts afresh; anything else in the folder is deleted.

        `key` covers everything that determines the contents; `state` is the initial state; `goes_on` permits resuming.
        """
        self._folder, self._key, self._types = folder, key, types
        noted = _read(folder / _NOTE) if goes_on else None
        if noted is None or noted["key"] != key or not all(_reaches(folder / n, noted["sizes"][n], types[n]) for n in types):
            with atomic.readable_errors(folder):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
            noted = {"sizes": dict.fromkeys(types, 0), "state": dict(state)}
        self.sizes: dict[str, int] = noted["sizes"]
        self.state: dict[str, Any] = noted["state"]
        self._times = 0

    def __enter__(self) -> Appending:
        self._files: dict[str, Any] = {}
        with contextlib.ExitStack() as opened, atomic.readable_errors(self._folder):
            for name, size in self.sizes.items():
                self._files[name] = opened.enter_context(open(self._folder / name, "ab"))
                self._files[name].truncate(size * self._types[name].itemsize)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with atomic.readable_errors(self._folder):
            self._opened.close()

    def append(self, columns: Mapping[str, Array], **state: Any) -> None:
        """Appends columns by name; `state` is where to resume after them. Raises OutputError."""
        for name, values in columns.items():
            with atomic.readable_errors(self._folder):
                self._files[name].write(values.astype(self._types[name]).tobytes())
            self.sizes[name] += len(values)
        self.state.update(state)
        self._times += 1
        if self._times % _NOTED_EVERY == 0:
            self._write(_NOTE, state=self.state)

    def finish(self, **record: Any) -> None:
        """Marks the columns as complete and stores `record` with them."""
        self._write(_RECORD, **record)
        (self._folder / _NOTE).unlink(missing_ok=True)

    def _write(self, name: str, **values: Any) -> None:
        with atomic.readable_errors(self._folder):
            for file in self._files.values():
                file.flush()
                os.fsync(file.fileno())
        atomic.write_text(self._folder / name, documents.to_json({"key": self._key, "sizes": self.sizes, **values}))


def record(folder: Path) -> dict[str, Any] | None:
    """The stored record, including `key`; None if the columns are missing, damaged or incomplete."""
    return _read(folder / _RECORD)


def mapped(folder: Path, types: Types) -> tuple[Array, ...]:
    """Memory-maps the columns of a folder that has a record; raises DataError if a file is missing or truncated."""
    sizes = (record(folder) or {"sizes": {}})["sizes"]
    return tuple(_mapped(folder / name, dtype, sizes.get(name, 0)) for name, dtype in types.items())


def release(*columns: Array) -> None:
    """Releases the resident pages of mapped columns, which the system would keep as long as it has room."""
    for column in columns:
        base = column.base
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None:
            base.madvise(mmap.MADV_DONTNEED)


def _mapped(path: Path, dtype: np.dtype[Any], size: int) -> Array:
    try:
        actual = path.stat().st_size
        if actual != size * dtype.itemsize:
            raise DataError(
                f"cut off: {actual} of {size * dtype.itemsize} bytes; delete the folder, and it is built again", path
            )
        return np.asarray(np.memmap(path, dtype, "r")) if size else np.zeros(0, dtype)
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error


def _reaches(path: Path, size: int, dtype: np.dtype[Any]) -> bool:
    return path.is_file() and path.stat().st_size >= size * dtype.itemsize


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = documents.read_json(path)
    except (OSError, documents.DocumentError):
        return None
    return content if isinstance(content, dict) and "key" in content and "sizes" in content else None
