"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from bert_tf.errors import OutputError
from bert_tf.io import files

# Names of the process's open files, which must not be replaced.
_NUMBERED = re.compile(r"(?:/dev/fd|/proc/self/fd)/(\d+)")
_OPEN = re.compile(rf"/dev/stdout|/dev/stderr|{_NUMBERED.pattern}")
UNCHANGED = "; nothing was changed"
_SHOWN = 48  # characters of a name in a temporary one, which may have 255 bytes
_DAY_S = 86_400
_DRAWN = os.urandom(4).hex()  # processes of two containers may have the same number
TEMPORARY = r"\..+\.\d+-[0-9a-f]{8}\.tmp(\.part\.tmp)?"  # regular expression of the names that a killed process may leave


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, follows: bool = True) -> Iterator[Path]:
    """Yields a temporary file or folder name beside `path`; leaving the block renames it to `path`.

    If the block fails, what it wrote is deleted and `path` is unchanged. Links are followed, without `follows` only inside
    their folder: others are replaced. A pipe or device cannot be replaced: its own name is yielded; a file that the process
    has open is appended to at its position. Raises OutputError on OS errors.
    """
    named = Path(path)
    leads_out = not follows and is_link_out(named)
    with readable_errors(named):
        if leads_out:
            pass
        elif _OPEN.fullmatch(os.fspath(path)) and not _is_other_pipe(os.fspath(path)):
            with _into_open(os.fspath(path)) as temporary:
                yield temporary
            return
        elif is_written_into(path):
            yield named
            return
        target = named if leads_out else linked(named)
    temporary = _beside(target, "tmp")
    try:
        with readable_errors(named):
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            to_disk(temporary)
            if os.path.isdir(temporary) and leads_out:
                target.unlink()
            _take_place(temporary, target)
    finally:
        if os.path.isdir(temporary):
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _take_place(temporary: Path, target: Path) -> None:
    old = _beside(target, "old")
    try:
        if os.path.isdir(temporary) and os.path.isdir(target):  # a folder cannot be renamed over another
            os.replace(target, old)
        os.replace(temporary, target)
    except BaseException:
        if os.path.isdir(old) and not os.path.lexists(target):
            os.replace(old, target)
        raise
    if os.path.isdir(old):
        with contextlib.suppress(OSError):  # the new one is in place
            os.replace(old, temporary)  # not to be put back any more, should deleting it be interrupted; `replacing` deletes it


def to_disk(temporary: Path) -> None:
    """Writes the data of a file, or of all in a folder, to the disk.

    Otherwise a file system may write the new name first, and a power cut leaves it empty.
    """
    inside = (path for path in temporary.rglob("*") if path.is_file() and not path.is_symlink())
    for path in inside if os.path.isdir(temporary) else [temporary]:
        with contextlib.suppress(FileNotFoundError):  # reported by the renaming
            number = os.open(path, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)


def _is_other_pipe(name: str) -> bool:
    """Whether this is an open pipe's name, as from `>(command)`, which opens as the same pipe again."""
    return bool(_NUMBERED.fullmatch(name)) and stat.S_ISFIFO(os.stat(name).st_mode)


@contextlib.contextmanager
def _into_open(name: str) -> Iterator[Path]:
    """Yields a temporary name, whose contents go to an open file: reopening it would overwrite its start."""
    match = _OPEN.fullmatch(name)
    number = int(match[1]) if match and match[1] else 2 if name.endswith("err") else 1
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "whole"
        yield temporary
        sys.stdout.flush()
        with temporary.open("rb") as source, open(os.dup(number), "wb") as target:
            shutil.copyfileobj(source, target)


def is_written_into(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe, device or open file, which is written into instead of replaced."""
    return bool(_OPEN.fullmatch(os.fspath(path))) or not (files.is_plain(path) or os.path.isdir(path))


def linked(path: Path) -> Path:
    """Returns a link's target, existing or not; other paths unchanged. Raises OSError if the link leads to itself."""
    if not os.path.islink(path):
        return path
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return Path(target)


def is_link_out(path: Path) -> bool:
    """Whether a path is a link that leads out of its folder, or to itself."""
    if not os.path.islink(path):
        return False
    target, folder = os.path.realpath(path), os.path.realpath(path.parent)
    return os.path.islink(target) or os.path.commonpath((target, folder)) != folder


def refuse_link_out(path: Path) -> None:
    if is_link_out(path):
        raise OutputError(f"{path}: is a link to {os.path.realpath(path)}, where nothing is written; delete the link")


def _beside(target: Path, purpose: str) -> Path:
    return target.with_name(f".{_shortened(target.name)}.{os.getpid()}-{_DRAWN}.{purpose}")


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN - 9]}-{zlib.crc32(os.fsencode(name)):08x}"


def delete_unfinished(path: str | os.PathLike[str]) -> None:
    """Deletes a killed process's partial writes, and puts back a folder that it was replacing; nobody may be writing now."""
    target = Path(path)
    with contextlib.suppress(OSError):  # leftovers do no harm
        name = re.compile(rf"\.{re.escape(_shortened(target.name))}\.\d+(-[0-9a-f]+)?\.(tmp|old|tmp\.part\.tmp)")
        rests = [path for path in target.parent.iterdir() if name.fullmatch(path.name)]
        replaced = [path for path in rests if path.suffix == ".old"]
        if replaced and not os.path.lexists(target):
            newest = max(replaced, key=os.path.getmtime)
            rests.remove(newest)
            os.replace(newest, target)
        for rest in rests:
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink()


def delete_old(folder: Path) -> None:
    """Deletes what processes killed more than a day ago left in a folder of their temporary files, of any name."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # of another user; leftovers do no harm
            if re.fullmatch(TEMPORARY, path.name) and path.lstat().st_mtime < time.time() - _DAY_S:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_text(path: str | os.PathLike[str], text: str, *, follows: bool = False) -> None:
    """Replaces a file; `follows` is for a path that the user has named: see `replacing`."""
    with replacing(path, follows=follows) as temporary:
        temporary.write_bytes(text.encode(errors="backslashreplace"))  # names of files may hold any byte


def make_folder(path: str | os.PathLike[str], *, follows: bool = True, mode: int = 0o777) -> Path:
    """Returns an existing, writable folder; raises OutputError if that fails.

    Without `follows` also for a link out of the folder that it is in: whoever made that chooses what is overwritten.
    Missing folders get `mode`, less the umask.
    """
    folder = Path(path)
    if not follows:
        refuse_link_out(folder)
    with readable_errors(folder):
        target = linked(folder)
        missing = [parent for parent in target.parents if not parent.exists()]
        for part in (*reversed(missing), target):
            part.mkdir(mode, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: cannot write: no permission; name another folder")
    return folder


@contextlib.contextmanager
def as_os_errors(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Turns a library's errors on a full disk into OSError."""
    try:
        yield
    except kinds as error:
        raise OSError(None, f"{str(error).partition(chr(10))[0][:200]}; is the disk full?", os.fspath(path)) from error


@contextlib.contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Turns an OSError within the block into an `OutputError` about `path`."""
    try:
        yield
    except BrokenPipeError:  # the reader is gone: not an error, see `cli.process`
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {files.reason(error)}{UNCHANGED}") from error
