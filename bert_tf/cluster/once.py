"""A model in a process: loaded once, however many tasks the process is given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Closes(Protocol):
    """What frees memory when another takes its place."""

    def close(self) -> None:
        """Frees it."""


T = TypeVar("T", bound=Closes)

_TURN = threading.Lock()
_LOADED: dict[object, Any] = {}


def once(key: object, make: Callable[[], T]) -> T:
    """Returns what was made for a key, the same as long as no other key is asked for.

    Args:
      key: says what it is.
      make: makes it.
    """
    with _TURN:
        if key not in _LOADED:
            for other in list(_LOADED):
                _LOADED.pop(other).close()
            _LOADED[key] = make()
        found: T = _LOADED[key]
        return found
