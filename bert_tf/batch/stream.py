"""Predictions for files of any size, in constant memory and in input order.

A file is written in chunks, and another process can resume it. OUTPUT.part holds the chunks until the file is complete.
OUTPUT.job.json records progress and the settings that determine the content; it stays, so that a complete file is not written
again. A writing job holds a lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from bert_tf.batch import file_pairs
from bert_tf.batch.ahead import ahead
from bert_tf.batch.file_pairs import FilePair
from bert_tf.errors import DataError, EmptyFileError, OutputError
from bert_tf.features.columns import Features
from bert_tf.io import atomic, documents, files, lock, progress
from bert_tf.io.files import PIPE
from bert_tf.io.log_form import log
from bert_tf.tasks.settings import SKIP

PATIENCE_S = 1.0  # with pipes: how long a line waits to be computed with others

_BLOCK = 1 << 20
_CHECKPOINT = "checkpoint"  # a setting, for readers of the output: a path, whose digest is another setting


Assemble = Callable[[Path, Path], None]  # makes the second file from the first, which holds all chunks


class ResumableFile:
    """A file that grows by chunks in a `with` block and is complete after it; counts its chunks and rows."""

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], assemble: Assemble | None = None) -> None:
        """Finds finished chunks; those written with other settings (JSON) do not count.

        `assemble` makes the file from its chunks at the end; None if the chunks are the file.
        """
        self._path, self._assemble = Path(path), assemble
        self._part, self._state_file = _beside(self._path)
        self._settings = documents.json_value(documents.to_json(settings))
        self.chunks = self.rows = self._size = 0
        self.finished = False
        self._begun_with = ""
        self._found = self._state_text()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            self._take_up(documents.parse_json(self._found, has_paths=True))

    def _state_text(self) -> str:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self._state_file.read_text(encoding="utf-8")
        return ""

    def _take_up(self, state: Mapping[str, Any]) -> None:
        numbers = [state[name] for name in ("chunks", "rows", "size")]
        if not all(type(number) is int and number >= 0 for number in numbers) or type(state["finished"]) is not bool:
            return
        status = (self._path if state["finished"] else self._part).stat()
        if state["finished"]:  # also by its time: another file may have the same size
            fits = [status.st_size, status.st_mtime_ns] == [state["size"], state["mtime_ns"]]
        else:
            fits = status.st_size >= state["size"]
        before = {**state["settings"]}
        others = [name for name in sorted({*before, *self._settings}) if not self._continues(name, before.get(name))]
        if others and not state["finished"] and state["chunks"]:
            self._begun_with = f"another {', '.join(others)}"
        elif fits and not others:
            self.chunks, self.rows, self._size = state["chunks"], state["rows"], state["size"]
            self.finished = state["finished"]

    def _continues(self, name: str, value: object) -> bool:
        """Whether chunks that were written with a value of a setting have the bytes of this job too."""
        wanted = self._settings.get(name)
        return name == _CHECKPOINT or value == wanted or (name == SKIP and value is False and wanted is True)  # had no bad row

    def __enter__(self) -> ResumableFile:
        """Opens the finished part; OutputError if it is unwritable or another job writes it."""
        atomic.make_folder(self._path.parent)
        with contextlib.ExitStack() as opened:
            opened.enter_context(lock.writing_file(self._path))
            if self._state_text() != self._found:
                raise OutputError(f"{self._path}: another job has written to it meanwhile; run the command again")
            with self._readable_errors():
                for path in (self._path, self._state_file):
                    atomic.delete_unfinished(path)
                if not self.chunks:
                    self._begin()
                self._file = opened.enter_context(self._part.open("ab"))
                self._file.truncate(self._size)  # drops a chunk that was being written
            self._opened = opened.pop_all()
        return self

    def _begin(self) -> None:
        """Says whose chunks the part will have, before it has any; OutputError if another program wrote it."""
        if not self._found and self._part.is_file() and self._part.stat().st_size:
            why = "another program's file has the name of the unfinished output"
            raise OutputError(f"{self._part}: {why}; rename it, or name another output")
        if self._begun_with:
            log.warning("%s: an unfinished output was begun with %s; it starts over", self._path, self._begun_with)
        self._save()

    def add(self, text: bytes, rows: int) -> None:
        with self._readable_errors():
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())  # a power cut must not keep the state without its chunk
            self.chunks, self.rows, self._size = self.chunks + 1, self.rows + rows, self._size + len(text)
            self._save()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Gives the file its final name unless the block failed."""
        with self._readable_errors(), self._opened:  # closing the file may write what is left in its buffer
            if kind is None:
                self._file.close()
                self._complete()
                self.finished = True
                self._save()
            elif not self.chunks:
                self._part.unlink(missing_ok=True)
                if self._found:
                    atomic.write_text(self._state_file, self._found)
                else:
                    self._state_file.unlink(missing_ok=True)

    def _complete(self) -> None:
        if self._assemble is None:
            os.replace(self._part, self._path)
            return
        with atomic.replacing(self._path) as temporary:
            self._assemble(self._part, temporary)
        self._part.unlink()
        self._size = self._path.stat().st_size

    def _save(self) -> None:
        state = {"settings": self._settings, "finished": self.finished, "chunks": self.chunks, "rows": self.rows}
        if self.finished:
            state["mtime_ns"] = self._path.stat().st_mtime_ns
        atomic.write_text(self._state_file, documents.to_json({**state, "size": self._size}, indent=1) + "\n")

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, OutputError) as error:
            refused = error if isinstance(error, OSError) else error.__cause__  # `atomic` would claim that nothing was changed
            if not isinstance(refused, OSError):
                raise
            raise OutputError(
                f"{self._path}: cannot write: {files.reason(refused)}; the same command continues where it stopped"
            ) from error


def forget(path: str | os.PathLike[str]) -> None:
    for beside in _beside(Path(path)):
        beside.unlink(missing_ok=True)


def _beside(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.job.json")


class _Plain:
    """A file or pipe without resumption, otherwise as `ResumableFile`."""

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
    """Format of an output, as `file_pairs.OutputForm`; its string is recorded with the settings."""

    @property
    def assemble(self) -> Assemble | None:
        """See `Assemble`."""


class Computes(Protocol):
    """Makes parts of an output, as `session.Predictor`."""

    def read(self, examples: Sequence[Any]) -> Features:
        """See `session.Predictor.read`."""

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: Any) -> bytes:
        """See `session.Predictor.lines`."""


def predict(
    pair: FilePair, inputs: Source, predictor: Computes, settings: Mapping[str, Any], *, form: Form | None = None
) -> None:
    """Predicts a file; resumes an unfinished one, skips a finished one. Pipes cannot be resumed.

    `settings` is everything but the input that determines the output; `form` None is that of the output's name. Raises
    DataError for an unreadable input or bad row, OutputError, and BrokenPipeError if the reader is gone.
    """
    form = form or file_pairs.output_form(pair.output, pair.output_format)
    if _passes_through(pair):
        log.info("%s to %s: pipes are streamed; nothing is kept for a restart", pair.input, pair.output)
        with opened(pair.output, form.assemble) as file:
            _stream(pair, inputs, predictor, form, _Plain(file))
        return
    digest, lines = _survey(pair.input)
    deciding = {**settings, "output_format": str(form), "input_sha256": digest}
    output = ResumableFile(atomic.linked(Path(pair.output)), deciding, form.assemble)
    if output.finished:
        log.info("%s already exists, with %d rows", pair.output, output.rows)
        return
    with output:
        _stream(pair, inputs, predictor, form, output, lines)


def predict_each(pairs: Sequence[FilePair], predict_one: Callable[[FilePair], None], *, skip_empty: bool) -> list[FilePair]:
    """Predicts files in turn and returns those done; `skip_empty` skips empty ones unless all are."""
    predicted: list[FilePair] = []
    empty: list[EmptyFileError] = []
    for pair in pairs:
        try:
            predict_one(pair)
            predicted.append(pair)
        except EmptyFileError as error:
            empty.append(error)
            if not skip_empty:
                raise
            log.warning("left out: %s", error)
    if not predicted:
        raise empty[0]
    return predicted


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
        if not hasattr(sys.stdout, "buffer"):
            raise OutputError("standard output is that of a notebook, which takes no bytes; name a file")
        yield sys.stdout.buffer
        return
    with _alone(output), atomic.replacing(output) as temporary:
        parts = temporary if assemble is None else temporary.with_name(f"{temporary.name}.part.tmp")  # as atomic.TEMPORARY
        with contextlib.ExitStack() as end:
            if assemble is not None:
                end.callback(parts.unlink, missing_ok=True)
            with parts.open("wb") as file:
                yield file
            if assemble is not None:
                assemble(parts, temporary)
        forget(atomic.linked(Path(output)))


@contextlib.contextmanager
def _alone(output: str) -> Iterator[None]:
    """Locks a file's name, and deletes what killed writers left beside it; pipes and devices are written into."""
    with atomic.readable_errors(Path(output)):
        is_written_into = atomic.is_written_into(output)
        path = Path(output) if is_written_into else atomic.linked(Path(output))
    if is_written_into:
        yield
        return
    atomic.make_folder(path.parent)
    with lock.writing_file(path):
        atomic.delete_unfinished(path)
        yield


def _stream(
    pair: FilePair, inputs: Source, predictor: Computes, form: Form, sink: ResumableFile | _Plain, lines: int | None = None
) -> None:
    if sink.chunks:
        log.info("%s: continuing after %d rows", pair.output, sink.rows)
    start, rows = time.perf_counter(), 0
    # A reader may wait for each line, as they may arrive one at a time.
    is_watched = all(path == PIPE or not files.is_plain(path) for path in (pair.input, pair.output))
    patience = PATIENCE_S if is_watched else None
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
    return digest.hexdigest(), None if files.is_compressed(path) or path.lower().endswith(".parquet") else lines
