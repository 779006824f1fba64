from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

class Shared:
    def acquire(self, constructor_fn: Callable[[], _T]) -> _T: ...
