"""Weights of several graphs in one file, from which ONNX Runtime maps them: workers of one machine share the memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data

_ALIGNED = 4096  # bytes: a page, at whose borders a file is mapped
_LEAST = 1024  # bytes of an array that is not kept in the graph


class WeightsFile:
    """Writes each array once; `tensor` refers to it."""

    def __init__(self, path: Path) -> None:
        self._path, self._places = path, dict[tuple[str, tuple[int, ...], str], int]()
        path.write_bytes(b"")

    def tensor(self, name: str, array: npt.NDArray[Any]) -> onnx.TensorProto:
        if array.nbytes < _LEAST:
            return numpy_helper.from_array(array, name)
        data = np.ascontiguousarray(array).tobytes()
        key = hashlib.sha256(data).hexdigest(), array.shape, array.dtype.str
        if key not in self._places:
            self._places[key] = self._appended(data)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=kind, raw_data=b"-")  # replaced by the place
        set_external_data(tensor, self._path.name, self._places[key], len(data))
        tensor.ClearField("raw_data")
        return tensor

    def _appended(self, data: bytes) -> int:
        with open(self._path, "ab") as file:
            start = -(-file.tell() // _ALIGNED) * _ALIGNED
            file.write(bytes(start - file.tell()) + data)
        return start
