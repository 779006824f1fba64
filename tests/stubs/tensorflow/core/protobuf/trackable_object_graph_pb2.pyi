from collections.abc import Sequence

class _SavedTensor:
    full_name: str
    checkpoint_key: str

class _Node:
    attributes: Sequence[_SavedTensor]

class TrackableObjectGraph:
    nodes: Sequence[_Node]
    @staticmethod
    def FromString(data: bytes) -> TrackableObjectGraph: ...
