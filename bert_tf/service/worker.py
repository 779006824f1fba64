"""A process that computes: it holds a model, and answers batches until nobody asks any more."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import psutil

from bert_tf import log_form
from bert_tf.errors import BertError, FlagError
from bert_tf.head_spec import PRETRAINING
from bert_tf.library.reading import Reader
from bert_tf.service import forms, values
from bert_tf.service.question import ENCODE, NORMALIZE, PREDICT, Part

_LEAST_LENGTH = 1e-12  # of a vector that is divided by its length


@dataclasses.dataclass(frozen=True)
class Source:
    """What a worker loads.

    Attributes:
      run: folder of a run, or a checkpoint.
      task_name: what the model has learned, where no record says it.
      loading: further arguments of `bert_tf.load`.
      vectors: what vectors of texts are: `pooling` and `layers`.
      encodes: whether every model offers vectors, not only those that were trained for them.
      verbosity: of the log.
    """

    run: str
    task_name: str | None = None
    loading: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    vectors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    encodes: bool = False
    verbosity: int = 0


@dataclasses.dataclass(frozen=True)
class Description:
    """A model, as a process without TensorFlow knows it.

    Attributes:
      name: of the folder of the run.
      checkpoint: its prefix.
      digest: tells its weights from others.
      kind: of its family.
      labels: of the classes or tags; empty where there are none.
      reader: reads its rows.
      calls: what it can be asked for.
      weight_bytes: in memory.
    """

    name: str
    checkpoint: str
    digest: str
    kind: str
    labels: tuple[str, ...]
    reader: Reader
    calls: tuple[str, ...]
    weight_bytes: int

    @property
    def form(self) -> forms.Form | None:
        """How it is asked; None if only its family knows."""
        return forms.of(self.kind, getattr(self.reader.family, "texts", None))

    @property
    def step(self) -> str:
        """Name of the checkpoint without its folder."""
        return Path(self.checkpoint).name


class Found(NamedTuple):
    """A worker says which model it is about to load."""

    description: Description


class Ready(NamedTuple):
    """A worker says that it computes, and how much memory it has taken."""

    memory_bytes: int


class Failed(NamedTuple):
    """A worker says why it cannot load, or compute a batch.

    Attributes:
      problem: one line.
      trace: of what nobody foresaw, for the log; empty for what the user can fix.
    """

    problem: str
    trace: str = ""


class Asked(NamedTuple):
    """A part without what only the queue needs."""

    call: str
    examples: Sequence[Any]
    options: Mapping[str, Any]


def asked(part: Part) -> Asked:
    """Returns what a worker is to know of a part."""
    return Asked(part.call, part.examples, part.options)


def run(connection: Connection, source: Source) -> None:
    """Computes until the other end of a connection is closed; the entry of a process.

    The process that listens decides when it ends: signals for the whole group of processes, as Ctrl-C, are for that one.
    When it dies, the connection closes too.

    Args:
      connection: see `converse`.
      source: what to load.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # TensorFlow's own, read when a device is begun: on one GPU there are several workers, at a reload at least.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    log_form.set_up(log_form.SHORT, source.verbosity)
    converse(connection, lambda: Served(source))


def converse(connection: Connection, make: Callable[[], Serves]) -> None:
    """Answers what a connection brings until its other end is closed.

    Args:
      connection: brings lists of `Asked`; takes `Found` and `Ready`, then a list of answers for each, or `Failed`.
      make: finds the model.
    """
    with contextlib.closing(connection), contextlib.suppress(EOFError, OSError):  # then nobody listens any more
        try:
            served = make()
            connection.send(Found(served.description))
            served.load()
            connection.send(Ready(psutil.Process().memory_info().rss))
        except Exception as error:
            connection.send(_failed(error))
            return
        while True:
            batch = connection.recv()
            try:
                answers: Any = served.answers(batch)
            except Exception as error:
                answers = _failed(error)
            connection.send(answers)


def _failed(error: Exception) -> Failed:
    line = " ".join(str(error).split())
    if isinstance(error, BertError):
        return Failed(line)
    return Failed(f"{type(error).__name__}: {line}", traceback.format_exc())


class Serves(Protocol):
    """What a worker computes with; see `Served`."""

    description: Description

    def load(self) -> None:
        """Makes it ready."""

    def answers(self, batch: Sequence[Asked]) -> list[list[bytes]]:
        """Returns the answers to the parts of a batch, JSON of each example."""


class Served:
    """A model that is asked for predictions and vectors."""

    def __init__(self, source: Source) -> None:
        """Finds the model; reads no weights yet.

        Args:
          source: what to load.

        Raises:
          BertError: there is no such model.
        """
        import bert_tf

        self._source = source
        self._model = bert_tf.load(source.run, task=source.task_name, **source.loading)
        reader = self._model.reader
        self._encodes = source.encodes or reader.family.kind in forms.OF_VECTORS
        if reader.family.kind == PRETRAINING and not self._encodes:
            raise FlagError(
                f"{source.run}: a model of pre-training is not served: masked words are filled in by python -m bert_tf"
                " fill-mask; serve a model that was fine-tuned from it, or vectors of texts with --encode"
            )
        self.description: Description = Description(
            name=_name(self._model.checkpoint),
            checkpoint=os.path.abspath(self._model.checkpoint),
            digest=self._model.digest,
            kind=reader.family.kind,
            labels=self._model.labels,
            reader=reader,
            calls=(PREDICT, *([ENCODE] if self._encodes else [])),
            weight_bytes=self._model.weight_bytes * (2 if self._encodes else 1),
        )

    def load(self) -> None:
        """Reads the weights, and computes once, so that the first request does not wait for that.

        Raises:
          BertError: the weights are damaged, or there is no memory for them.
        """
        self._model.load_weights()
        if self.description.form is not None:
            self._model.predict([self.description.form.example])
        if self._encodes:
            self._encode(["a"])

    def answers(self, batch: Sequence[Asked]) -> list[list[bytes]]:
        """Returns the answers to the parts of a batch, JSON of each example.

        Raises:
          BertError: memory is out, or the model computes what is no number.
        """
        found: list[list[bytes]] = [[] for _ in batch]
        for call, compute in ((PREDICT, self._predicted), (ENCODE, self._encoded)):
            places = [place for place, one in enumerate(batch) if one.call == call]
            for place, answer in zip(places, compute([batch[place] for place in places]) if places else ()):
                found[place] = answer
        return found

    def _predicted(self, batch: Sequence[Asked]) -> list[list[bytes]]:
        predictions = iter(self._model.answer([example for one in batch for example in one.examples]))
        return [[values.as_json(next(predictions)) for _ in one.examples] for one in batch]

    def _encoded(self, batch: Sequence[Asked]) -> list[list[bytes]]:
        texts = [example.texts for one in batch for example in one.examples]
        vectors = iter(self._encode([text[0] if len(text) == 1 else text for text in texts]))
        return [[_vector(next(vectors), one.options) for _ in one.examples] for one in batch]

    def _encode(self, texts: Sequence[Any]) -> Any:
        return self._model.encode(texts, **self._source.vectors)


def _vector(vector: Any, options: Mapping[str, Any]) -> bytes:
    if options.get(NORMALIZE):
        vector = vector / np.maximum(np.linalg.norm(vector), _LEAST_LENGTH)
    return values.vector_as_json(vector)


def _name(checkpoint: str) -> str:
    """Returns the name of a run's folder; its best checkpoint is in one of its own."""
    from bert_tf.run_layout import BEST

    folder = Path(checkpoint).absolute().parent
    return folder.parent.name if folder.name == BEST else folder.name
