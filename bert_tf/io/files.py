"""Files to read: reports why one cannot be read, before a read that would not end.

A user may name anything that has a path: a folder, an endless device, a pipe that can be read once. `open` waits
for a pipe without a writer, and `read` takes all of /dev/zero.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, Union

from bert_tf.errors import DataError

StrPath = Union[str, "os.PathLike[str]"]

LARGEST = 1 << 26  # bytes of a file that is read as a whole: vocabularies have 1 MB, configurations and jobs some kB

PIPE = "-"
_GZ = ".gz"
NO_FILE, NO_FOLDER = "no such file", "no such folder"
SAFE_FOLDER = 0o755  # mode of a folder that is not `unsafe`, whatever the umask and the group
_SCHEME = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://")

_KINDS = {
    stat.S_IFDIR: (errno.EISDIR, os.strerror(errno.EISDIR)),
    stat.S_IFIFO: (errno.EINVAL, "it is a pipe, which can be read only once; save its output to a file"),
    stat.S_IFCHR: (errno.EINVAL, "it is a device, which may never end; name a file"),
    stat.S_IFBLK: (errno.EINVAL, "it is a device; name a file"),
    stat.S_IFSOCK: (errno.EINVAL, "it is a socket; name a file"),
}
# Remedies for errors of the operating system; any others are unexpected.
_REMEDIES = {
    errno.EACCES: "grant this user access (ls -l shows who has it), or name another place",
    errno.EPERM: "grant this user access (ls -l shows who has it), or name another place",
    errno.ENOENT: "",
    errno.ENOTDIR: "a part of the path is a file",
    errno.EISDIR: "name a file",
    errno.EEXIST: "",
    errno.ENOTEMPTY: "",
    errno.EINVAL: "",
    errno.ENAMETOOLONG: "most file systems allow 255 bytes a name",
    errno.ELOOP: "a link leads to itself",
    errno.ENOSPC: "free some space, or name another place",
    errno.EDQUOT: "free some space, or name another place",
    errno.EFBIG: "raise the limit (ulimit -f), or name another place",
    errno.EROFS: "name another place",
    errno.EIO: "the disk or its connection fails",
    errno.ESTALE: "the network drive has lost it; try again",
    errno.ENODEV: "",
    errno.ENXIO: "nobody reads it",
    errno.EBADF: "the stream is closed",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "the machine has too many open files",
    errno.EAGAIN: "the machine or its limits (ulimit -u) allow no more processes",
    errno.ENOMEM: "free memory, or raise the limit (ulimit -v)",
    errno.ETIMEDOUT: "the network drive does not answer; try again",
    errno.ENOTCONN: "the network drive is not connected",
    errno.ENOLCK: "the file system has no locks left",
    errno.EXDEV: "",
    errno.EOPNOTSUPP: "the file system cannot do that; name another place",
    errno.EBUSY: "another program uses it",
    errno.ETXTBSY: "another program uses it",
}


OF_STORAGE = (  # errors that may pass: of drives, and of a limit of open files
    errno.EIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.EMFILE,
    errno.ENFILE,
    errno.EBUSY,
    errno.ENOTCONN,
    errno.ENODEV,
)


def is_foreseen(error: OSError) -> bool:
    """Whether an OSError is one that a user can fix."""
    return error.errno in _REMEDIES


def reason(error: OSError) -> str:
    message = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0, "")
    return f"{message}; {remedy}" if remedy and ";" not in message else message


def reason_in(text: str) -> str | None:
    """Why a drive, or a limit of open files, refused a file, if TensorFlow says so: "NAME; Stale file handle"; else None."""
    number = next((number for number in OF_STORAGE if re.search(rf"; {re.escape(os.strerror(number))}$", text, re.M)), None)
    return None if number is None else reason(OSError(number, os.strerror(number)))


def is_plain(path: StrPath) -> bool:
    """Whether a path is a rereadable file or does not exist yet: not a pipe, device or folder."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


def check_plain(path: StrPath) -> None:
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:
        raise OSError(errno.EINVAL, "the name holds a NUL character", os.fspath(path)) from error
    if not stat.S_ISREG(mode):
        number, words = _KINDS.get(stat.S_IFMT(mode), (errno.EINVAL, "it is not a regular file"))
        raise OSError(number, words, os.fspath(path))


def missing(path: StrPath) -> str | None:
    try:
        open_plain(path).close()
    except FileNotFoundError:
        return NO_FILE
    except OSError as error:
        return reason(error)
    return None


def refuse_missing(path: str) -> None:
    """Raises DataError if there is no file of this name; patterns and URLs are looked into when they are read."""
    if path != PIPE and not glob.has_magic(path) and _is_missing(path):
        raise DataError(NO_FILE, path)


def refuse_missing_folder(path: str) -> None:
    if _is_missing(path):
        raise DataError(NO_FOLDER, path)


def _is_missing(path: str) -> bool:
    """Whether nothing has this name; False for one that is too long or a URL, which its reader refuses or reads."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return "://" not in path
    except (OSError, ValueError):
        return False
    return False


def missing_folder(path: StrPath) -> str | None:
    try:
        with os.scandir(path):
            return None
    except FileNotFoundError:
        return NO_FOLDER
    except NotADirectoryError:
        return "it is not a folder"
    except OSError as error:
        return reason(error)


def open_plain(path: StrPath) -> BinaryIO:
    check_plain(path)
    return open(path, "rb")  # noqa: SIM115  (who calls this closes it)


def read_begin(path: StrPath, size: int) -> bytes:
    with open_plain(path) as file:
        return file.read(size)


def read_bytes(path: StrPath, *, most: int = LARGEST) -> bytes:
    """Reads a file of at most `most` bytes; raises OSError for a larger one."""
    with open_plain(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MB; is it the right file?", os.fspath(path))
    return data


def is_compressed(name: StrPath) -> bool:
    return os.fspath(name).lower().endswith(_GZ)


def uncompressed(name: str) -> str:
    """The name without .gz, in any case."""
    return name[: -len(_GZ)] if is_compressed(name) else name


def read_text(path: StrPath) -> str:
    """Reads UTF-8 without byte order mark; OSError as `read_bytes`, UnicodeDecodeError."""
    return read_bytes(path).decode("utf-8-sig").replace("\r\n", "\n")


def unsafe(path: StrPath) -> str:
    """Returns why others can change a file or a folder's content; empty if only this user and root can.

    A group counts as others unless its number is the owner's, as for a private group. In a folder like /tmp (sticky)
    others cannot change this user's files. Missing paths are not checked.
    """
    resolved = Path(path).resolve()
    for ancestor in (resolved, *resolved.parents):
        try:
            status = ancestor.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if status.st_uid not in (0, os.geteuid()):
            return f"{ancestor}: belongs to another user ({status.st_uid})"
        others = stat.S_IWOTH if status.st_gid == status.st_uid else stat.S_IWOTH | stat.S_IWGRP
        if status.st_mode & others and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
            return f"{ancestor}: others can write to it (chmod go-w)"
    return ""


def digest(path: StrPath) -> str:
    """Returns a file's SHA-256; for a folder that of its entries' names and digests."""
    sha256 = hashlib.sha256()
    if Path(path).is_dir():
        for file in sorted(Path(path).iterdir()):
            sha256.update(f"{digest(file)}  {file.name}\n".encode())
        return sha256.hexdigest()
    with open_plain(path) as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            sha256.update(block)
    return sha256.hexdigest()


def has_scheme(path: str) -> bool:
    """Whether a path names a file system, as gs://bucket/file; False for every local path."""
    return bool(_SCHEME.match(path))
