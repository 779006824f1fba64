"""Files as torch.save writes them, made by hand: a zip file of stored records, one of which is a pickle of protocol 2."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

KINDS = {"float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage"}
KINDS |= {"bfloat16": "BFloat16Storage", "int64": "LongStorage", "bool": "BoolStorage"}


class View(NamedTuple):
    """A tensor as a view of a storage of its own; wrong ones too."""

    values: np.ndarray  # the storage
    offset: int
    shape: Sequence[int]
    strides: Sequence[int]
    elements: int | None = None  # that the pickle says the storage has
    key: str | None = None  # of a storage that is written for another tensor


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def numbers(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(view: View, key: str) -> bytes:
    kind = KINDS[view.values.dtype.name]
    elements = view.values.size if view.elements is None else view.elements
    storage = b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + number(elements) + b"tQ"
    place = number(view.offset) + numbers(view.shape) + numbers(view.strides)
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + place + b"\x89ccollections\nOrderedDict\n)RtR"


def contiguous(array: np.ndarray) -> View:
    array = np.array(array, order="C")
    return View(array.ravel(), 0, array.shape, [stride // array.itemsize for stride in array.strides])


def pickle_of(views: Mapping[str, View]) -> bytes:
    items = b"".join(text(name) + tensor(view, view.key or str(n)) for n, (name, view) in enumerate(views.items()))
    metadata = b"}" + text("_metadata") + b"ccollections\nOrderedDict\n)Rsb"
    return b"\x80\x02ccollections\nOrderedDict\n)Rq\x00(" + items + b"u" + metadata + b"."


def write(path: Path, arrays: Mapping[str, Any], *, pickle: bytes | None = None, root: str = "archive") -> Path:
    """Writes arrays or views by name; `pickle` replaces their description."""
    views = {name: one if isinstance(one, View) else contiguous(one) for name, one in arrays.items()}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{root}/data.pkl", pickle_of(views) if pickle is None else pickle)
        file.writestr(f"{root}/byteorder", "little")
        for n, view in enumerate(views.values()):
            if view.key is None:
                file.writestr(f"{root}/data/{n}", view.values.tobytes())
        file.writestr(f"{root}/version", "3\n")
    return path


ARRAYS = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "b.bias": np.array([1.5, -2], ml_dtypes.bfloat16)}
ARRAYS |= {"c": np.array([[0.5]], np.float16), "d": np.array(7, np.int64), "e": np.array([True, False]), "f": np.zeros([0, 4])}
