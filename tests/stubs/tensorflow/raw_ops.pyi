from collections.abc import Sequence
from typing import Any

from tensorflow import Operation, Tensor
from tensorflow._values import DTypeLike, ShapeLike, TensorLike

def AssignSubVariableOp(*, resource: Tensor, value: TensorLike) -> Operation: ...
def AssignVariableOp(*, resource: Tensor, value: TensorLike) -> Operation: ...
def Empty(*, shape: ShapeLike, dtype: DTypeLike, init: bool = False) -> Tensor: ...
def ResourceApplyAdam(
    *,
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: TensorLike,
    beta2_power: TensorLike,
    lr: TensorLike,
    beta1: TensorLike,
    beta2: TensorLike,
    epsilon: TensorLike,
    grad: TensorLike,
) -> Operation: ...
def ResourceApplyGradientDescent(*, var: Tensor, alpha: TensorLike, delta: TensorLike) -> Operation: ...
def ResourceScatterUpdate(*, resource: Tensor, indices: TensorLike, updates: TensorLike) -> Operation: ...
def SaveV2(*, prefix: str, tensor_names: Sequence[str], shape_and_slices: Sequence[str], tensors: Sequence[Any]) -> object: ...
