from collections.abc import Sequence
from typing import Any

class SavedModel:
    meta_graphs: Sequence[Any]
    @classmethod
    def FromString(cls, data: bytes) -> SavedModel: ...
    def SerializeToString(self, *, deterministic: bool = False) -> bytes: ...
