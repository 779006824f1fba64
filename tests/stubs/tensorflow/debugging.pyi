from collections.abc import Sequence

from tensorflow import Operation
from tensorflow._values import TensorLike

def Assert(condition: TensorLike, data: Sequence[TensorLike]) -> Operation: ...
