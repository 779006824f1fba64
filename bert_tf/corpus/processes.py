"""Work on all cores: the results of a function in the order of what it is given, while few of them wait in memory."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from bert_tf import progress
from bert_tf.errors import BertError

A = TypeVar("A")
B = TypeVar("B")

_AHEAD = 2  # tasks for each worker that wait or are done before their turn

_work: Any = None  # of a worker process: what it does


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def mapped(work: Callable[[A], B], tasks: Iterable[A], *, workers: int, unit: str = "piece") -> Iterator[B]:
    """Yields the results of tasks, in their order.

    Args:
      work: what is done with each; is pickled once for each worker.
      tasks: read as far as workers need them.
      workers: processes; with 1, or where there is one task, this process does the work.
      unit: what a task is, for the bar that shows how many are done.

    Raises:
      BertError: as `work`, or a worker is gone.
    """
    total, left = len(tasks) if isinstance(tasks, Sized) else None, iter(tasks)
    first = list(itertools.islice(left, 2)) if workers > 1 else []
    given = itertools.chain(first, left)
    results = map(work, given) if len(first) < 2 else _by_workers(work, given, workers)
    with contextlib.closing(progress.bar(unit=f" {unit}", total=total)) as bar:
        for result in results:
            yield result
            bar.update()


def _by_workers(work: Callable[[A], B], tasks: Iterable[A], workers: int) -> Iterator[B]:
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads, as TensorFlow has, may hang
    with concurrent.futures.ProcessPoolExecutor(workers, context, _begin, (work,)) as pool:
        waiting: collections.deque[concurrent.futures.Future[B]] = collections.deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(_do, task))
                if len(waiting) >= workers * (1 + _AHEAD):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise BertError("a worker process ended; is memory out? Try fewer --workers; the same command goes on") from error
        finally:
            for future in waiting:
                future.cancel()


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed: it would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(task: Any) -> Any:
    return _work(task)
