from tensorflow import RaggedTensor
from tensorflow._values import TensorLike

def range(starts: TensorLike, limits: TensorLike | None = None, deltas: TensorLike = 1) -> RaggedTensor: ...
