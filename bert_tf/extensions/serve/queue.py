"""Queue of request parts, and the batches made from them.

A batch is full at a number of tokens, across requests. A batch that is not full waits for more parts, but no longer
than the delay of its first part. Requests take turns, so that a long one does not block the short ones behind it.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Iterable, Sequence

from bert_tf.extensions.serve.call import Part

Answer = list[bytes]  # JSON of each example

_AT_ONCE = 0.0  # a deadline that has passed


class GoneError(Exception):
    """The model was replaced and takes no further requests; retry with its successor."""


@dataclasses.dataclass
class Waiting:
    """A part in the queue."""

    part: Part
    # future of the result
    answer: concurrent.futures.Future[Answer] = dataclasses.field(default_factory=concurrent.futures.Future)
    alone: bool = False  # never batched with others: a worker failed on its batch


class Queue:
    """Takes parts from one thread and hands batches to several."""

    def __init__(self, *, batch_tokens: int, max_delay_s: float) -> None:
        """A batch has at most `batch_tokens`, unless a single part has more, and waits at most `max_delay_s` to fill up.

        It does not wait if the previous batch had one request: a lone client need not wait.
        """
        self._batch_tokens, self._max_delay_s = batch_tokens, max_delay_s
        self._was_shared = True  # the last batch was of several requests
        self._changed = threading.Condition()
        self._requests: collections.deque[tuple[float, collections.deque[Waiting]]] = collections.deque()
        self._tokens = 0
        self._closed = False

    @property
    def tokens(self) -> int:
        return self._tokens

    @property
    def requests(self) -> int:
        """Number of requests with at least one part waiting."""
        return len(self._requests)

    def put(self, parts: Iterable[Part]) -> list[Waiting]:
        """Adds a request and returns its parts with their pending answers; raises GoneError if the queue is closed."""
        waiting = [Waiting(part) for part in parts]
        if waiting:
            with self._changed:
                if self._closed:
                    raise GoneError
                self._requests.append((time.monotonic(), collections.deque(waiting)))
                self._tokens += sum(one.part.tokens for one in waiting)
                self._changed.notify()
        return waiting

    def put_back(self, waiting: Sequence[Waiting], *, alone: bool = True) -> None:
        """Returns taken parts to the front, each to be computed alone if a worker may have failed on it."""
        with self._changed:
            for one in reversed(waiting):
                one.alone |= alone
                self._requests.appendleft((_AT_ONCE, collections.deque([one])))
                self._tokens += one.part.tokens
            self._changed.notify()

    def take(self, timeout_s: float) -> list[Waiting] | None:
        """A batch; an empty list if none came within `timeout_s`; None if the queue is closed and empty."""
        with self._changed:
            if not self._requests and not self._closed:
                self._changed.wait(timeout_s)
            while self._requests and (rest := self._delay()) > 0:
                self._changed.wait(rest)
            batch = self._batch()
            if self._requests:
                self._changed.notify()
            return None if self._closed and not batch else batch

    def discard_cancelled(self) -> None:
        """Drops parts whose clients no longer wait, so that their tokens keep no others out."""
        with self._changed:
            left = ((since, [one for one in parts if not one.answer.cancelled()]) for since, parts in self._requests)
            self._requests = collections.deque((since, collections.deque(parts)) for since, parts in left if parts)
            self._tokens = sum(one.part.tokens for _, parts in self._requests for one in parts)

    def _delay(self) -> float:
        """Remaining seconds to wait for the batch to fill up."""
        if self._closed or self._tokens >= self._batch_tokens or not self._was_shared:
            return 0.0
        return min(since for since, _ in self._requests) + self._max_delay_s - time.monotonic()

    def _batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        tokens, begun = 0, set()
        while self._requests:
            since, parts = self._requests[0]
            one = parts[0]
            if batch and tokens + one.part.tokens > self._batch_tokens:
                break
            parts.popleft()
            self._requests.popleft()
            if parts:
                self._requests.append((since, parts))
            self._tokens -= one.part.tokens
            if not _begins(one):
                continue
            batch.append(one)
            begun.add(since)
            tokens += one.part.tokens
            if one.alone:
                break
        if batch:
            self._was_shared = len(begun) > 1
        return batch

    def close(self) -> None:
        """Rejects new parts; queued ones can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def fail(self) -> None:
        """Ends what waits with GoneError."""
        with self._changed:
            waiting = [one for _, parts in self._requests for one in parts]
            self._requests.clear()
            self._tokens = 0
        for one in waiting:
            if _begins(one):
                one.answer.set_exception(GoneError())


def _begins(one: Waiting) -> bool:
    """Marks a part as running; False if its client has cancelled it."""
    return one.answer.running() or one.answer.set_running_or_notify_cancel()  # the former of what was put back
