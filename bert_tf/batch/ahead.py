"""Prefetching in another thread."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yields items while a daemon thread makes the next but one; a silent pipe does not keep the process alive."""
    with _made(items, 1) as filled:
        while True:
            item, error = filled.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item


def gathered(items: Iterable[T], most: int, patience_s: float) -> Iterator[list[T]]:
    """Yields lists of at most `most` items; the first item waits at most `patience_s` seconds for others.

    Runs in another thread as `ahead`; items before a failure are yielded before it is raised.
    """
    item, error = None, None
    with _made(items, most) as filled:
        while item is not _END and error is None:
            batch: list[T] = []
            until = math.inf
            with contextlib.suppress(queue.Empty):
                while len(batch) < most:
                    item, error = filled.get(timeout=max(0.0, until - time.monotonic()) if batch else None)
                    if item is _END or error is not None:
                        break
                    until = until if batch else time.monotonic() + patience_s
                    batch.append(item)
            if batch:
                yield batch
    if error is not None:
        raise error


@contextlib.contextmanager
def _made(items: Iterable[T], size: int) -> Iterator[queue.Queue[tuple[Any, BaseException | None]]]:
    """Bounded queue filled by a thread with items, then the end or an error; the thread ends after the block."""
    filled: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(maxsize=size)
    is_left = threading.Event()

    def make() -> None:
        try:
            for item in items:
                filled.put((item, None))
                if is_left.is_set():
                    break
            else:
                filled.put((_END, None))
        except BaseException as error:
            filled.put((None, error))
        if isinstance(items, Generator):
            items.close()

    threading.Thread(target=make, name="read ahead", daemon=True).start()
    try:
        yield filled
    finally:
        is_left.set()
        with contextlib.suppress(queue.Empty):
            while True:
                filled.get_nowait()  # room for the item that the thread waits with
