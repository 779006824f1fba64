"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bert_tf.errors import OutputError

TEMPORARY = ".*.[0-9]*.tmp"  # pattern of the names that a killed process may leave


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary name beside `path`, for a file or a folder; leaving the block renames it to `path`.

    Where the block fails, what was written is deleted and `path` is as it was.

    Raises:
      OutputError: the operating system refuses: no space, no permission, a file where a folder should be.
    """
    target = Path(path)
    temporary = _beside(target, "tmp")
    try:
        with readable_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            if temporary.is_dir() and target.is_dir():  # a folder cannot be renamed over another
                os.replace(target, _beside(target, "old"))
            os.replace(temporary, target)
            shutil.rmtree(_beside(target, "old"), ignore_errors=True)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _beside(target: Path, purpose: str) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.{purpose}")


def delete_unfinished(path: str | os.PathLike[str]) -> None:
    """Deletes what killed processes have left of a file that they were writing; no other may be writing it now."""
    target = Path(path)
    with contextlib.suppress(OSError):  # they are in nobody's way
        for rest in target.parent.glob(f".{glob.escape(target.name)}.[0-9]*.tmp"):
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a UTF-8 text file.

    Raises:
      OutputError: as `replacing`.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Returns a folder that exists and can be written to.

    Raises:
      OutputError: it cannot be made or written to.
    """
    folder = Path(path)
    with readable_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: cannot write: no permission; name another folder")
    return folder


@contextlib.contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Turns what the operating system refuses within the block into an `OutputError` about `path`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {error.strerror or error}; nothing was changed") from error
