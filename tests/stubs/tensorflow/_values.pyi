from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tensorflow import DType, Operation, Tensor, TensorShape, Variable
from typing_extensions import TypeAlias

# What TensorFlow makes a tensor of.
TensorLike: TypeAlias = Tensor | Variable | npt.NDArray[Any] | np.generic | complex | str | bytes | Sequence["TensorLike"]
Dimension: TypeAlias = int | Tensor | None
ShapeLike: TypeAlias = TensorShape | Tensor | Sequence[Dimension]
DTypeLike: TypeAlias = DType | npt.DTypeLike
Axis: TypeAlias = int | Sequence[int] | Tensor | None
Control: TypeAlias = Tensor | Operation
