from collections.abc import Sequence
from typing import Any, TypeVar

_T = TypeVar("_T", bound=PipelineOptions)

class PipelineOptions:
    def __init__(self, flags: Sequence[str] | None = None) -> None: ...
    def view_as(self, cls: type[_T]) -> _T: ...
    def get_all_options(self, *, retain_unknown_options: bool = False) -> dict[str, Any]: ...

class DirectOptions(PipelineOptions):
    direct_num_workers: int
    direct_running_mode: str
