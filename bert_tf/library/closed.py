"""Models that a program must close, and the error for a closed one."""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError
from bert_tf.runtime import forks

T = TypeVar("T", bound="Closable")


class ClosedError(BertError):
    """The model was closed."""


class Closable(abc.ABC):
    """A model that loads its weights lazily; `close`, or the end of a `with` block, frees them."""

    def __init__(self, trained: Trained, inference: InferenceOptions) -> None:
        self._trained, self._inference = trained, inference
        self._lock = threading.Lock()
        self._closed = False

    @property
    def checkpoint(self) -> str:
        return self._trained.prefix

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Serializes threads; raises ForkedError in a forked process, which could deadlock on a thread of its parent."""
        forks.begin()
        with self._lock:
            yield

    def close(self) -> None:
        if forks.is_child():  # they are the parent's
            self._closed = True
            return
        with self._lock:
            self._closed = True
            self._forget()

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @abc.abstractmethod
    def _forget(self) -> None:
        """Frees loaded weights, if any."""
