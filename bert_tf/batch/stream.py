"""Predictions for files of any size, in constant memory and in the order of the input."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from bert_tf import atomic, files, progress
from bert_tf.batch import output_form, resumable
from bert_tf.batch.ahead import ahead
from bert_tf.batch.inputs import Inputs
from bert_tf.batch.job import FilePair
from bert_tf.batch.output_form import OutputForm
from bert_tf.batch.prediction import Predictor
from bert_tf.batch.resumable import ResumableFile
from bert_tf.errors import DataError
from bert_tf.log_form import log

PIPE = "-"
PATIENCE_S = 1.0  # between pipes: how long a line waits for others to be computed with it

_BLOCK = 1 << 20


class Sink(Protocol):
    """Where predictions go."""

    chunks: int  # that are there already
    rows: int  # in these

    def add(self, text: bytes, rows: int) -> None:
        """Adds a chunk.

        Args:
          text: its lines.
          rows: how many examples it has.
        """


class _Plain:
    """A file or pipe that keeps nothing for a second try."""

    chunks = rows = 0

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, text: bytes, _: int) -> None:
        self._file.write(text)
        self._file.flush()


def predict(pair: FilePair, inputs: Inputs, predictor: Predictor, settings: Mapping[str, Any]) -> None:
    """Predicts a file; one that an earlier process began is continued, and one that it finished is left alone.

    What comes out of a pipe or goes into one is not kept for a second try.

    Args:
      pair: input and output.
      inputs: how to read it.
      predictor: what computes.
      settings: everything but the input that decides on the bytes of the output.

    Raises:
      DataError: the input cannot be read, or has a bad row.
      OutputError: the output cannot be written.
      BrokenPipeError: nobody reads the pipe any more.
    """
    if _passes_through(pair):
        log.info("%s to %s: pipes are read and written as they come, and nothing is kept", pair.input, pair.output)
        with _opened(pair.output) as file:
            _stream(pair, inputs, predictor, _Plain(file), None)
        return
    digest, lines = _survey(pair.input)
    deciding = {**settings, "output_format": str(_form(pair)), "input_sha256": digest}
    output = ResumableFile(atomic.linked(Path(pair.output)), deciding)
    if output.finished:
        log.info("%s is there already, with %d rows", pair.output, output.rows)
        return
    with output:
        _stream(pair, inputs, predictor, output, lines)


def _form(pair: FilePair) -> OutputForm:
    return output_form.of(pair.output, pair.output_format)


def _is_watched(pair: FilePair) -> bool:
    """Whether lines may come one at a time, and somebody may wait for each of them."""
    return all(path == PIPE or not files.is_plain(path) for path in (pair.input, pair.output))


def _passes_through(pair: FilePair) -> bool:
    """Whether a pipe or device is among them, of which nothing is kept.

    Raises:
      DataError: the operating system does not tell what the input is.
      OutputError: the same of the output.
    """
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
def _opened(output: str) -> Iterator[BinaryIO]:
    if output == PIPE:
        yield sys.stdout.buffer
        return
    with atomic.replacing(output) as temporary, temporary.open("wb") as file:
        yield file
        resumable.forget(atomic.linked(Path(output)))


def _stream(pair: FilePair, inputs: Inputs, predictor: Predictor, sink: Sink, lines: int | None) -> None:
    if sink.chunks:
        log.info("%s: continuing after %d rows", pair.output, sink.rows)
    start, rows = time.perf_counter(), 0
    form, patience = _form(pair), PATIENCE_S if _is_watched(pair) else None
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
    """Returns the sha256 of a file, and how many lines end in it, None where it is compressed."""
    digest, lines = hashlib.sha256(), 0
    with _readable_errors(path), files.open_plain(path) as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            digest.update(block)
            lines += block.count(b"\n")
    return digest.hexdigest(), None if path.endswith(".gz") else lines
