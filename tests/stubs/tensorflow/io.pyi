from collections.abc import Mapping

from tensorflow import RaggedTensor, Tensor
from tensorflow._values import DTypeLike

class RaggedFeature:
    def __init__(self, dtype: DTypeLike, value_key: str | None = None) -> None: ...

def parse_example(serialized: Tensor, features: Mapping[str, RaggedFeature]) -> dict[str, RaggedTensor]: ...
