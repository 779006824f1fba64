"""Predictions for files of any size, in constant memory and in input order."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from bert_tf import atomic, files, progress
from bert_tf.batch import output_form, resumable
from bert_tf.batch.ahead import ahead
from bert_tf.batch.file_pairs import PIPE, FilePair
from bert_tf.batch.resumable import Assemble, ResumableFile
from bert_tf.errors import DataError, EmptyFileError
from bert_tf.features.columns import Features
from bert_tf.log_form import log

PATIENCE_S = 1.0  # between pipes: how long a line waits for others to be computed with it

_BLOCK = 1 << 20


class Sink(Protocol):
    """Receives predictions."""

    chunks: int  # that are there already
    rows: int  # in these

    def add(self, text: bytes, rows: int) -> None:
        """Adds a chunk of `rows` predictions."""


class _Plain:
    """A file or pipe without resumption."""

    chunks = rows = 0

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, text: bytes, _: int) -> None:
        self._file.write(text)
        self._file.flush()


class Source(Protocol):
    """Reads files, as `inputs.Inputs`."""

    def chunks(self, source: str, *, patience_s: float | None = None) -> Iterator[list[Any]]:
        """See `inputs.Inputs.chunks`."""


class Form(Protocol):
    """Format of an output, as `output_form.OutputForm`; its string is recorded with the settings."""

    @property
    def assemble(self) -> Assemble | None:
        """See `resumable.Assemble`."""


class Computes(Protocol):
    """Makes parts of an output, as `prediction.Predictor`."""

    def read(self, examples: Sequence[Any]) -> Features:
        """See `prediction.Predictor.read`."""

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: Any) -> bytes:
        """See `prediction.Predictor.lines`."""


def predict(
    pair: FilePair, inputs: Source, predictor: Computes, settings: Mapping[str, Any], *, form: Form | None = None
) -> None:
    """Predicts a file; resumes an unfinished one, skips a finished one. Pipes cannot be resumed.

    `settings` is everything but the input that determines the output; `form` None is that of the output's name. Raises
    DataError for an unreadable input or bad row, OutputError, and BrokenPipeError if the reader is gone.
    """
    form = form or output_form.of(pair.output, pair.output_format)
    if _passes_through(pair):
        log.info("%s to %s: pipes are read and written as they come, and nothing is kept", pair.input, pair.output)
        with opened(pair.output, form.assemble) as file:
            _stream(pair, inputs, _Parts(predictor, form), _Plain(file), None)
        return
    digest, lines = _survey(pair.input)
    deciding = {**settings, "output_format": str(form), "input_sha256": digest}
    output = ResumableFile(atomic.linked(Path(pair.output)), deciding, form.assemble)
    if output.finished:
        log.info("%s is there already, with %d rows", pair.output, output.rows)
        return
    with output:
        _stream(pair, inputs, _Parts(predictor, form), output, lines)


def predict_each(pairs: Sequence[FilePair], predict_one: Callable[[FilePair], None], *, skip_empty: bool) -> list[FilePair]:
    """Predicts files in turn and returns those done; `skip_empty` skips empty ones unless all are."""
    done: list[FilePair] = []
    empty: list[EmptyFileError] = []
    for pair in pairs:
        try:
            predict_one(pair)
            done.append(pair)
        except EmptyFileError as error:
            empty.append(error)
            if not skip_empty:
                raise
            log.warning("left out: %s", error)
    if not done:
        raise empty[0]
    return done


class _Parts(NamedTuple):
    predictor: Computes
    form: Form


def _is_watched(pair: FilePair) -> bool:
    """Whether lines may arrive one at a time, and a reader may wait for each."""
    return all(path == PIPE or not files.is_plain(path) for path in (pair.input, pair.output))


def _passes_through(pair: FilePair) -> bool:
    """Whether input or output is a pipe or device, which cannot be resumed."""
    if PIPE in (pair.input, pair.output):
        return True
    with atomic.readable_errors(Path(pair.output)):
        written_into = atomic.is_written_into(pair.output)
    with _readable_errors(pair.input):
        return written_into or not files.is_plain(pair.input)


@contextlib.contextmanager
def _readable_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error


@contextlib.contextmanager
def opened(output: str, assemble: Assemble | None) -> Iterator[BinaryIO]:
    """Opens an output (`-` for standard output) for its parts, assembled when the block ends."""
    if output == PIPE:
        yield sys.stdout.buffer
        return
    with atomic.replacing(output) as temporary:
        parts = temporary if assemble is None else temporary.with_name(f"{temporary.name}.part")
        with contextlib.ExitStack() as end:
            if assemble is not None:
                end.callback(parts.unlink, missing_ok=True)
            with parts.open("wb") as file:
                yield file
            if assemble is not None:
                assemble(parts, temporary)
        resumable.forget(atomic.linked(Path(output)))


def _stream(pair: FilePair, inputs: Source, parts: _Parts, sink: Sink, lines: int | None) -> None:
    if sink.chunks:
        log.info("%s: continuing after %d rows", pair.output, sink.rows)
    start, rows = time.perf_counter(), 0
    predictor, form = parts
    patience = PATIENCE_S if _is_watched(pair) else None
    chunks = itertools.islice(inputs.chunks(pair.input, patience_s=patience), sink.chunks, None)
    read = ahead((examples, predictor.read(examples)) for examples in chunks)
    with progress.bar(total=lines, initial=sink.rows, unit="row") as bar:
        for number, (examples, features) in enumerate(read, sink.chunks):
            sink.add(predictor.lines(number, examples, features, form), len(examples))
            bar.update(len(examples))
            rows += len(examples)
        bar.total = bar.n  # a header is a line too
    seconds = time.perf_counter() - start
    log.info("%s: %d rows in %.1f s, %.1f rows/s", pair.output, rows, seconds, rows / seconds)


def _survey(path: str) -> tuple[str, int | None]:
    """The file's sha256 and number of lines, None if it is compressed."""
    digest, lines = hashlib.sha256(), 0
    with _readable_errors(path), files.open_plain(path) as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            digest.update(block)
            lines += block.count(b"\n")
    return digest.hexdigest(), None if path.endswith(".gz") else lines
