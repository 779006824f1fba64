"""Shape and dtype of a stored tensor."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np


class Entry(NamedTuple):
    """Known without reading the values."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Size of the values; 0 for strings."""
        kinds: Mapping[str, Any] = {"bfloat16": ml_dtypes.bfloat16}
        with contextlib.suppress(TypeError):
            return math.prod(self.shape) * int(np.dtype(kinds.get(self.dtype, self.dtype)).itemsize)
        return 0
