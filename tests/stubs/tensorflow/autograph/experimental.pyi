from collections.abc import Callable
from typing import TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])

def do_not_convert(func: _Function) -> _Function: ...
