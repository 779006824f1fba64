"""A file system of a scheme that only tests know: `memory://name` lies in a folder, and Python's `open` cannot open it."""

import os
import posixpath
from pathlib import Path

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem

ROOT = "MEMORY_FILES"  # variable that names the folder, for other processes too
_SCHEME = "memory://"


class MemoryFiles(FileSystem):
    """As an object store: no folders, what is written is there when it is closed, and paths have a scheme."""

    @classmethod
    def scheme(cls):
        return "memory"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        head, tail = posixpath.split(path.removeprefix(_SCHEME))
        return _SCHEME + head, tail

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        names = sorted(name for name in os.listdir(os.environ[ROOT]) if name.startswith(_name(dir_or_prefix)))
        return (self.metadata(_SCHEME + name.replace("\\", "/")) for name in names)

    def create(self, path, mime_type=None, compression_type=CompressionTypes.AUTO):  # noqa: ARG002
        assert compression_type == CompressionTypes.UNCOMPRESSED
        return _file(path).open("wb")

    def open(self, path, mime_type=None, compression_type=CompressionTypes.AUTO):  # noqa: ARG002
        assert compression_type == CompressionTypes.UNCOMPRESSED
        return _file(path).open("rb")

    def copy(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names):
            _file(target).write_bytes(_file(source).read_bytes())

    def rename(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names):
            _file(source).rename(_file(target))

    def exists(self, path):
        return _file(path).is_file()

    def size(self, path):
        return _file(path).stat().st_size

    def last_updated(self, path):
        return _file(path).stat().st_mtime

    def checksum(self, path):
        return str(hash(_file(path).read_bytes()))

    def metadata(self, path):
        if not self.exists(path):
            raise BeamIOError("no such file", {path: FileNotFoundError(path)})
        return FileMetadata(path, self.size(path), self.last_updated(path))

    def delete(self, paths):
        for path in paths:
            _file(path).unlink(missing_ok=True)


def put(path: str, data: bytes) -> None:
    """Writes a file."""
    _file(path).write_bytes(data)


def get(path: str) -> bytes:
    """Reads a file."""
    return _file(path).read_bytes()


def names() -> list[str]:
    """Returns the paths of all files."""
    return [_SCHEME + name.replace("\\", "/") for name in sorted(os.listdir(os.environ[ROOT]))]


def _name(path: str) -> str:
    return path.removeprefix(_SCHEME).replace("/", "\\")


def _file(path: str) -> Path:
    assert path.startswith(_SCHEME)
    return Path(os.environ[ROOT], _name(path))
