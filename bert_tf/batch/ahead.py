"""Work ahead in another thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_END = object()


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yields items; the next but one is made while one is in use.

    The thread does not keep the process from its end, wherever it waits: a pipe may never say more.
    """
    made: queue.Queue[tuple[object, BaseException | None]] = queue.Queue(maxsize=1)

    def make() -> None:
        try:
            for item in items:
                made.put((item, None))
            made.put((_END, None))
        except BaseException as error:
            made.put((_END, error))

    threading.Thread(target=make, name="read ahead", daemon=True).start()
    while True:
        item, error = made.get()
        if error is not None:
            raise error
        if item is _END:
            return
        yield item
