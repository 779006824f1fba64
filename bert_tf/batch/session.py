"""Models that compute for a program or a job until they are closed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from bert_tf.batch.engine import Engine, InferenceOptions
from bert_tf.batch.file_pairs import OutputForm
from bert_tf.batch.inputs import KeptChunk, with_columns
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError
from bert_tf.features.columns import Features
from bert_tf.runtime import forks
from bert_tf.tasks.base import Family, Outputs

T = TypeVar("T", bound="Session")


class ClosedError(BertError):
    """The model was closed."""


class Session:
    """A model that loads its weights lazily; `close`, or the end of a `with` block, frees them.

    Threads may share one; they take turns.
    """

    _INSTEAD = "make another"  # if it was closed

    def __init__(self, trained: Trained, inference: InferenceOptions, *, weights_of: Session | None = None) -> None:
        """Loads nothing yet.

        Args:
          trained: weights and their metadata.
          inference: where and how to compute.
          weights_of: has the same checkpoint, and shares its weights in memory; it frees them.
        """
        self.trained, self.inference = trained, inference
        self.digest = trained.digest  # of now: weights are read later, and refused if another run has replaced them
        self._weights_of = weights_of
        self._lock: threading.Lock = threading.Lock() if weights_of is None else weights_of._lock
        self._engine: Engine | None = None
        self._closed = False

    @property
    def checkpoint(self) -> str:
        return self.trained.prefix

    def load_weights(self) -> None:
        """Loads the weights now, so that the first prediction does not wait for them.

        Raises:
          CheckpointError: they are damaged.
          ClosedError: the model was closed.
        """
        with self._turn():
            self._loaded(self.trained)

    def outputs(self, features: Features, trained: Trained | None = None) -> Outputs:
        """Outputs of the head; `trained` is this model with another head."""
        with self._turn():
            return self._loaded(trained or self.trained).outputs(features)

    def close(self) -> None:
        """Frees the weights; the model cannot be used afterwards."""
        if forks.is_child():  # they are the parent's
            self._closed = True
            return
        with self._lock:
            self._closed = True
            self._forget()

    def __getstate__(self) -> dict[str, Any]:
        raise BertError(f"{self!r} cannot be sent to another process; load it there: bert_tf.load({self.checkpoint!r})")

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Serializes threads; raises ForkedError in a forked process, which could deadlock on a thread of its parent."""
        forks.begin()
        with self._lock:
            yield

    def _loaded(self, trained: Trained) -> Engine:
        if self._closed:
            raise ClosedError(f"{self!r} was closed; {self._INSTEAD}")
        if self._weights_of is not None:
            return self._weights_of._loaded(trained)
        self._engine = self._engine or self.inference.engine()
        self._engine.load(trained)
        return self._engine

    def _forget(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


class Predictor(Session):
    """A model that predicts examples of its task; must be closed."""

    def __init__(self, trained: Trained, family: Family, inference: InferenceOptions) -> None:
        super().__init__(trained, inference)
        self.family = family

    def read(self, examples: Sequence[Any]) -> Features:
        """Converts examples to features; may run in another thread beside `lines`."""
        return self.family.features(examples, self.trained.tokenizer, self.trained.limits)

    def predictions(self, examples: Sequence[Any], features: Features | None = None) -> Any:
        features = self.read(examples) if features is None else features
        return self.family.predictions(self.outputs(features), features, examples)

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: OutputForm) -> bytes:
        """A line for each example of chunk `number`, which counts from 0; chunk 0 starts with the header."""
        layout = self.family.layout(form.form)
        lines = layout.rows(examples, self.predictions(examples, features))
        if isinstance(examples, KeptChunk):
            return form.encode(with_columns(layout, form.form, lines, examples, first=number == 0))
        return form.encode((layout.header() if number == 0 else "") + lines)
