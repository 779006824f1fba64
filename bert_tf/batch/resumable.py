"""A file written in chunks, resumable by another process.

OUTPUT.part holds the chunks until the file is complete. OUTPUT.job.json records progress and the settings that determine
the content; it stays, so that a complete file is not written again. A writing job holds a lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from bert_tf import atomic, documents, files, lock
from bert_tf.errors import OutputError

Assemble = Callable[[Path, Path], None]  # writes a whole file, the second, of one that holds all its chunks


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
        self._found = self._state_text()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            self._take_up(documents.json_value(self._found))

    def _state_text(self) -> str:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self._state_file.read_text(encoding="utf-8")
        return ""

    def _take_up(self, state: Mapping[str, Any]) -> None:
        numbers = [state[name] for name in ("chunks", "rows", "size")]
        if not all(type(number) is int and number >= 0 for number in numbers) or type(state["finished"]) is not bool:
            return
        there = (self._path if state["finished"] else self._part).stat()
        if state["finished"]:  # by its time too: another file may be as long
            fits = [there.st_size, there.st_mtime_ns] == [state["size"], state["mtime_ns"]]
        else:
            fits = there.st_size >= state["size"]
        if fits and state["settings"] == self._settings:
            self.chunks, self.rows, self._size = state["chunks"], state["rows"], state["size"]
            self.finished = state["finished"]

    def __enter__(self) -> ResumableFile:
        """Opens the finished part; OutputError if it is unwritable or another job writes it."""
        atomic.make_folder(self._path.parent)
        with contextlib.ExitStack() as opened:
            opened.enter_context(lock.writing_file(self._path))
            if self._state_text() != self._found:
                raise OutputError(f"{self._path}: another job has written to it meanwhile; run the command again")
            with self._readable_errors():
                atomic.delete_unfinished(self._state_file)
                self._file = opened.enter_context(self._part.open("ab"))
                self._file.truncate(self._size)  # of the chunk that was being written
            self._opened = opened.pop_all()
        return self

    def add(self, text: bytes, rows: int) -> None:
        with self._readable_errors():
            self._file.write(text)
            self._file.flush()
            self.chunks, self.rows, self._size = self.chunks + 1, self.rows + rows, self._size + len(text)
            self._save()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Gives the file its final name unless the block failed."""
        with self._opened, self._readable_errors():
            if kind is None:
                self._file.close()
                self._complete()
                self.finished = True
                self._save()
            elif not self.chunks:
                self._part.unlink(missing_ok=True)

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
            refused = error if isinstance(error, OSError) else error.__cause__  # `atomic` says that nothing was changed
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
