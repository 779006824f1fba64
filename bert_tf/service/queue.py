"""Parts of requests that wait to be computed, and the batches that are made of them.

A batch is full at so many tokens, whichever requests they are of. One that is not full waits for others, but no longer than the
first of it may wait. Requests take turns, so that a long one does not hold up the short ones behind it.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Iterable, Sequence

from bert_tf.service.question import Part

Answer = list[bytes]  # JSON of each example

_AT_ONCE = 0.0  # a time at which nothing could wait any longer


class GoneError(Exception):
    """The model was replaced, and computes no further requests; ask the one that has taken its place."""


@dataclasses.dataclass
class Waiting:
    """A part that waits.

    Attributes:
      part: what to compute.
      answer: gets what was computed.
      alone: whether it shares no batch, since a worker ended, or failed, on one that it was in.
    """

    part: Part
    answer: concurrent.futures.Future[Answer] = dataclasses.field(default_factory=concurrent.futures.Future)
    alone: bool = False


class Queue:
    """Takes parts from one thread and gives batches to several."""

    def __init__(self, *, batch_tokens: int, max_delay_s: float) -> None:
        """Makes an empty one.

        Args:
          batch_tokens: of a batch; more only where one part alone has more.
          max_delay_s: longest wait for a batch to become full.
        """
        self._batch_tokens, self._max_delay_s = batch_tokens, max_delay_s
        self._changed = threading.Condition()
        self._requests: collections.deque[tuple[float, collections.deque[Waiting]]] = collections.deque()
        self._tokens = 0
        self._closed = False

    @property
    def tokens(self) -> int:
        """Of all that wait."""
        return self._tokens

    @property
    def requests(self) -> int:
        """How many wait, or wait for their last parts."""
        return len(self._requests)

    def put(self, parts: Iterable[Part]) -> list[Waiting]:
        """Adds a request; returns its parts, whose answers are to come.

        Raises:
          GoneError: the queue is closed.
        """
        waiting = [Waiting(part) for part in parts]
        if waiting:
            with self._changed:
                if self._closed:
                    raise GoneError
                self._requests.append((time.monotonic(), collections.deque(waiting)))
                self._tokens += sum(one.part.tokens for one in waiting)
                self._changed.notify()
        return waiting

    def put_back(self, waiting: Sequence[Waiting]) -> None:
        """Adds again, before all others, what was taken and not computed; each is to be computed by itself."""
        with self._changed:
            for one in reversed(waiting):
                one.alone = True
                self._requests.appendleft((_AT_ONCE, collections.deque([one])))
                self._tokens += one.part.tokens
            self._changed.notify()

    def take(self, timeout_s: float) -> list[Waiting] | None:
        """Returns a batch; nothing where none has come in time; None where the queue is closed and empty.

        Args:
          timeout_s: longest wait for the first part.
        """
        with self._changed:
            if not self._requests and not self._closed:
                self._changed.wait(timeout_s)
            while self._requests and (rest := self._delay()) > 0:
                self._changed.wait(rest)
            batch = self._batch()
            if self._requests:
                self._changed.notify()
            return None if self._closed and not batch else batch

    def _delay(self) -> float:
        """Returns how much longer to wait for a batch to become full, in seconds."""
        if self._closed or self._tokens >= self._batch_tokens:
            return 0.0
        return min(since for since, _ in self._requests) + self._max_delay_s - time.monotonic()

    def _batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        tokens = 0
        while self._requests:
            since, parts = self._requests[0]
            one = parts[0]
            if batch and (one.alone or tokens + one.part.tokens > self._batch_tokens):
                break
            parts.popleft()
            self._requests.popleft()
            if parts:
                self._requests.append((since, parts))
            self._tokens -= one.part.tokens
            if not _begins(one):
                continue
            batch.append(one)
            tokens += one.part.tokens
            if one.alone:
                break
        return batch

    def close(self) -> None:
        """Lets those who take have what is left, and no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """Ends everything that waits with an error."""
        with self._changed:
            waiting = [one for _, parts in self._requests for one in parts]
            self._requests.clear()
            self._tokens = 0
        for one in waiting:
            if _begins(one):
                one.answer.set_exception(error)


def _begins(one: Waiting) -> bool:
    """Whether somebody still waits for a part, which then cannot be cancelled any more."""
    return not one.answer.done() if one.alone else one.answer.set_running_or_notify_cancel()
