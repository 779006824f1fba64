"""Loads a model once per process, for any number of tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Closes(Protocol):
    def close(self) -> None:
        """Frees memory when another object takes its place."""


T = TypeVar("T", bound=Closes)

_TURN = threading.Lock()
_LOADED: dict[object, Any] = {}


def once(key: object, make: Callable[[], T]) -> T:
    """Returns the object made for a key, the same until another key is requested."""
    with _TURN:
        if key not in _LOADED:
            for other in list(_LOADED):
                _LOADED.pop(other).close()
            _LOADED[key] = make()
        found: T = _LOADED[key]
        return found
