"""Locks between writers to one place: the operating system's, which end with the process.

A lock is a hidden file, with another beside it that names its holder; both are deleted on release. Files left by a
kill block nobody. On a file system without locks, writing continues with a warning.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bert_tf.errors import OutputError
from bert_tf.io import atomic, documents, files
from bert_tf.io.log_form import log

_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_WRITTEN: dict[str, int] = {}  # open folders, by name: while one is open, no other has its number
_SILENT_S = 2.0  # a wait for another process is logged after this time


@contextlib.contextmanager
def writing_folder(path: str | os.PathLike[str], *, instead: str = "name another folder") -> Iterator[None]:
    """Makes a folder and locks it for the block; deletes it if the block leaves it empty.

    Raises OutputError if another process writes to it; `instead` tells a second writer the alternative to waiting.
    """
    folder = Path(path)
    new_folders = [part for part in (folder, *folder.parents) if not part.exists()]
    atomic.make_folder(folder)
    try:
        with _held(folder / ".writer", folder, instead), _opened(folder):
            yield
    finally:
        with contextlib.suppress(OSError):
            for part in new_folders:
                part.rmdir()


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[None]:
    with atomic.readable_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    _WRITTEN[str(folder)] = descriptor
    try:
        yield
    finally:
        _WRITTEN.pop(str(folder), None)
        os.close(descriptor)


def is_lost(path: str | os.PathLike[str]) -> bool:
    """Whether a folder that this process writes to was deleted or renamed meanwhile; another one may have its name."""
    descriptor = _WRITTEN.get(str(Path(path)))
    try:
        return descriptor is not None and not os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # of a drive, for a moment or for good
        return False


@contextlib.contextmanager
def writing_file(path: str | os.PathLike[str]) -> Iterator[None]:
    target = Path(path)
    with _held(target.with_name(f".{target.name}.writer"), target, "name another output"):
        yield


@contextlib.contextmanager
def claiming(path: str | os.PathLike[str], *, wait: bool = False) -> Iterator[str | None]:
    """Claims a name, which need not exist, in an existing folder; yields None, or the other holder unless `wait`."""
    target = Path(path)
    with _noted(target.with_name(f".{target.name}.claim"), target.parent, wait=wait) as other:
        yield other


@contextlib.contextmanager
def taking_turns(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Waits until no other process is in such a block of the existing folder."""
    directory = Path(folder)
    with _noted(directory / ".turn", directory, wait=True):
        yield


def holder_of(folder: str | os.PathLike[str]) -> int | None:
    """Returns the process that writes to a folder on this machine, or was killed there; None if there is none."""
    try:
        note = documents.parse_json((Path(folder) / ".writer.json").read_text(encoding="utf-8"))
        return int(note["pid"]) if note["host"] == socket.gethostname() else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def is_written(folder: str | os.PathLike[str]) -> bool:
    """Whether a process writes to a folder, also one of another machine if the file system has locks between them."""
    try:
        descriptor = os.open(Path(folder) / ".writer.lock", os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:  # there is none
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK or (error.errno in _NO_LOCKS and is_alive(holder_of(folder)))
    finally:
        os.close(descriptor)
    return False


def is_alive(process: int | None) -> bool:
    if process is None:
        return False
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


@contextlib.contextmanager
def _held(base: Path, target: Path, instead: str) -> Iterator[None]:
    """Holds a lock without waiting; OutputError names the other holder."""
    with _noted(base, target) as other:
        if other is not None:
            raise OutputError(f"{target}: {other}; wait until it ends, or {instead}")
        yield


@contextlib.contextmanager
def _noted(base: Path, target: Path, *, wait: bool = False) -> Iterator[str | None]:
    """Holds a lock and notes its holder; yields None, or the other holder. `base` names both files without endings."""
    holder = base.with_name(f"{base.name}.json")
    with _lock_of(base.with_name(f"{base.name}.lock"), target, wait=wait) as is_held:
        if not is_held:
            yield _who(holder)
            return
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        note = documents.to_json({"host": socket.gethostname(), "pid": os.getpid(), "since": since})
        with contextlib.suppress(OSError):  # as of another user's killed process in /tmp: the lock is held all the same
            holder.unlink(missing_ok=True)  # in a stranger's folder it may be a link to any file
            holder.write_text(note, encoding="utf-8")
        try:
            yield None
        finally:
            with contextlib.suppress(OSError, UnicodeDecodeError):  # the folder may be gone, or recreated by another
                if holder.read_text(encoding="utf-8") == note:
                    holder.unlink()


@contextlib.contextmanager
def _lock_of(path: Path, target: Path, *, wait: bool) -> Iterator[bool]:
    try:
        descriptor = _acquired(path, wait=wait)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise OutputError(f"{target}: cannot write: {files.reason(error)}; nothing was changed") from error
        _warn_of_no_locks(target)
        try:
            yield True
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
        return
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                if _is_at(path, descriptor):  # else the folder was deleted, and recreated by another
                    path.unlink()  # while held, so that no other lock is deleted
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _acquired(path: Path, *, wait: bool) -> int | None:
    """Returns the locked open file, None if another process has it."""
    while True:
        with contextlib.ExitStack() as opened:
            with contextlib.suppress(FileNotFoundError):
                if path.is_symlink():
                    path.unlink()
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except PermissionError:  # of another user's process, which was killed
                if not path.exists():
                    raise
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            opened.callback(os.close, descriptor)
            _allow_others(descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    return None
                _wait(descriptor, path)
            if _is_at(path, descriptor):  # else its last holder deleted it meanwhile, and another may have recreated it
                opened.pop_all()
                return descriptor


def _allow_others(descriptor: int) -> None:
    """Lets others lock a file that a kill leaves behind, whatever the umask; NFS locks only what is open for writing."""
    with contextlib.suppress(OSError):  # it is another user's
        status = os.fstat(descriptor)
        if status.st_nlink == 1 and not status.st_size:  # else in a stranger's folder it may be a link to any file
            os.fchmod(descriptor, 0o666)


def _wait(descriptor: int, path: Path) -> None:
    def say() -> None:
        log.info("%s: %s; waiting until it ends", path.parent, _who(path.with_suffix(".json")))

    saying = threading.Timer(_SILENT_S, say)
    saying.daemon = True
    saying.start()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        saying.cancel()


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@functools.cache
def _warn_of_no_locks(target: Path) -> None:
    log.warning("%s: this file system does not support locks; do not start a second command that writes to it", target)


def _who(holder: Path) -> str:
    try:
        note = documents.parse_json(holder.read_text(encoding="utf-8"))
        return f"process {note['pid']} on {note['host']} has been writing to it since {note['since']}"
    except (OSError, ValueError, TypeError, KeyError):  # it holds the lock, but has not named itself yet
        return "another process is writing to it"
