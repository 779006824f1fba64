"""Ordered parallel map over all cores with few results waiting in memory."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from bert_tf.errors import BertError
from bert_tf.io import progress
from bert_tf.runtime import cgroup

A = TypeVar("A")
B = TypeVar("B")

_AHEAD = 2  # tasks per worker that wait, or are done early


class LostWorkerError(BertError):
    """A worker process died: its task may succeed when it is repeated."""


def cores() -> int:
    return cgroup.granted_cpus()


def mapped(work: Callable[[A], B], tasks: Iterable[A], *, workers: int, unit: str = "piece") -> Iterator[B]:
    """Yields the results of tasks in order, with at most `workers` processes.

    `work` is pickled once per worker; tasks are read only as workers need them; with one worker or one task this
    process does the work. `unit` names a task in the progress bar. Raises what `work` raises, or LostWorkerError
    if a worker dies.
    """
    total, left = len(tasks) if isinstance(tasks, Sized) else None, iter(tasks)
    first = list(itertools.islice(left, 2)) if workers > 1 else []
    all_tasks = itertools.chain(first, left)
    results = map(work, all_tasks) if len(first) < 2 else _by_workers(work, all_tasks, workers)
    with contextlib.closing(progress.bar(unit=f" {unit}", total=total)) as bar:
        for result in results:
            yield result
            bar.update()


def _by_workers(work: Callable[[A], B], tasks: Iterator[A], workers: int) -> Iterator[B]:
    """Gives a task to each idle worker and yields results in task order.

    There are no threads and no queues between the processes: they can be killed at any moment, and nothing waits for
    them. A worker is started if a task waits and all others are busy, so that there are never more of them than tasks.
    """
    every: list[_Worker] = []
    idle: list[_Worker] = []
    busy: dict[Any, tuple[int, _Worker]] = {}  # by connection
    done: dict[int, tuple[Exception | None, Any]] = {}
    numbered, following = enumerate(tasks), 0
    waiting = next(numbered, None)

    def collect(timeout: float | None) -> None:
        for connection in multiprocessing.connection.wait(list(busy), timeout) if busy else ():
            number, worker = busy.pop(connection)
            done[number] = worker.result()
            idle.append(worker)

    try:
        while waiting or busy or done:
            while waiting and (idle or len(every) < workers) and len(busy) + len(done) < workers * (1 + _AHEAD):
                if not idle:
                    every.append(_Worker(work))
                    idle.append(every[-1])
                worker = idle.pop()
                worker.begin(waiting[1])
                busy[worker.connection] = waiting[0], worker
                waiting = next(numbered, None)
                collect(timeout=0)  # idle workers go before new ones
            while following in done:
                error, result = done.pop(following)
                if error is not None:  # in task order too, so that it is always the same error
                    raise error
                yield result
                following += 1
            collect(timeout=None)
    finally:
        for worker in every:
            worker.end()


class _Worker:
    """A process that does one task at a time."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.connection, other = multiprocessing.Pipe()
        self._process = _Process(target=_serve, args=(other, work), daemon=True)
        self._process.start()
        other.close()

    def begin(self, task: Any) -> None:
        with _readable():
            self.connection.send(task)

    def result(self) -> tuple[Exception | None, Any]:
        """The task's error or None, and its result."""
        with _readable():
            error, value = self.connection.recv()
        return error, value

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise LostWorkerError("a worker process died, perhaps out of memory; free some, and repeat the command") from error


class _Process(SpawnProcess):
    """A spawned process: forking a process with threads, such as TensorFlow's, may hang.

    It does not import the main script, which may do all its work on import.
    """

    def start(self) -> None:
        main = vars(sys.modules["__main__"])
        hidden = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
        main["__spec__"] = None
        try:
            super().start()
        finally:
            main.update(hidden)


def _serve(connection: Connection, work: Callable[[Any], Any]) -> None:
    """Does tasks until the parent exits or has no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        error, result = None, None
        try:
            result = work(task)
        except Exception as raised:
            error = raised
        connection.send((error, result))


def _end_with_parent() -> None:
    """Ends a worker in the middle of a task if its parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
