"""Files through Beam's file systems: the local one and installed schemes (gs, s3, hdfs)."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from bert_tf import run_layout
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME, PART
from bert_tf.errors import BertError, CheckpointError, DataError, FlagError, OutputError
from bert_tf.extensions.cluster import shipped
from bert_tf.io import files
from bert_tf.io.log_form import log

_SHOWN = 200  # characters of a message from elsewhere
_MAGIC = re.compile(r"[*?[]")
_EXTRAS = {"gs": "gcp", "s3": "aws", "azfs": "azure"}
_NEWEST = re.compile(rb'^model_checkpoint_path: "(?:.*/)?([^"/]+)"', re.MULTILINE)


class Stored(NamedTuple):
    """An existing file."""

    path: str
    size: int  # bytes
    changed: float  # seconds since the epoch; 0 if unknown


def is_pattern(path: str) -> bool:
    return bool(_MAGIC.search(path))


def joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def divided(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def matching(pattern: str) -> list[Stored]:
    """Returns the files matching a path or pattern, sorted; a trailing slash matches all that start so."""
    with readable_errors(pattern):
        (matched,) = FileSystems.match([pattern])
    stored = (
        Stored(metadata.path, metadata.size_in_bytes, metadata.last_updated_in_seconds) for metadata in matched.metadata_list
    )
    return sorted(entry for entry in stored if not entry.path.endswith("/"))


def open_file(path: str) -> BinaryIO:
    """Opens a seekable file of the stored bytes, not decompressed."""
    with readable_errors(path):
        file: Any = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    return cast(BinaryIO, file if hasattr(file, "peek") else io.BufferedReader(file))


def checksum(path: str) -> str:
    """Returns a checksum of the content; empty if the file system has none."""
    with contextlib.suppress(Exception):
        return str(FileSystems.checksum(path))
    return ""


def delete(paths_of_files: Sequence[str]) -> None:
    if paths_of_files:
        with contextlib.suppress(Exception):
            FileSystems.delete(list(paths_of_files))


@contextlib.contextmanager
def readable_errors(path: str) -> Iterator[None]:
    """Turns a file system's errors within the block into one line."""
    try:
        yield
    except BertError:
        raise
    except ValueError as error:
        if "Unable to get filesystem" not in str(error):
            raise
        scheme = path.partition("://")[0]
        raise FlagError(
            f"{path}: Apache Beam knows no file system {scheme}; pip install 'apache-beam[{_EXTRAS.get(scheme, scheme)}]',"
            " or import the module that registers it"
        ) from error
    except Exception as error:  # each file system has errors of its own
        foreseen = isinstance(error, OSError) and files.is_foreseen(error)
        problem = "cannot read the file" if foreseen else "the file system does not answer"
        raise DataError(f"{problem}: {reason(error)}", path) from error


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise OutputError(f"{path}: cannot write: {reason(error)}") from error


def reason(error: BaseException) -> str:
    if isinstance(error, BeamIOError) and error.exception_details:
        error = next(iter(error.exception_details.values()))
    text = files.reason(error) if isinstance(error, OSError) and error.errno else str(error) or type(error).__name__
    return text.splitlines()[0][:_SHOWN]


def inputs(pattern: str) -> list[Stored]:
    if not files.has_scheme(pattern) and not is_pattern(pattern) and not pattern.endswith("/"):
        why = files.missing(pattern)
        if why:
            raise DataError(f"cannot read the file: {why}", pattern)
    matches = matching(pattern)
    if not matches:
        raise DataError("no such file, or no match for the pattern", pattern)
    return matches


def checkpoint(name: str) -> str:
    """Returns a local checkpoint prefix for a prefix, one of its files, or a run folder; no scheme means local."""
    if not files.has_scheme(name):
        return name
    prefix = _newest_prefix(PART.sub("", name.rstrip("/")))
    folder, of_checkpoint = divided(prefix)
    beside = [stored for name in (*run_layout.beside(), run_layout.DECISION) for stored in matching(joined(folder, name))]
    return str(_copied([*matching(f"{prefix}.*"), *beside]) / of_checkpoint)


def file(name: str) -> str:
    """Returns a file's local name; no scheme means local."""
    if not files.has_scheme(name):
        return name
    stored = inputs(name)[:1]
    return str(_copied(stored) / divided(stored[0].path)[1])


def _newest_prefix(name: str) -> str:
    if matching(f"{name}.index"):
        return name
    for folder in (joined(name, run_layout.BEST), name):
        for listed in matching(joined(folder, run_layout.LIST)):
            with readable_errors(listed.path), open_file(listed.path) as stream:
                newest = _NEWEST.search(stream.read())
            if newest:
                return joined(folder, newest[1].decode())
    if matching(joined(name, f"{CHECKPOINT_NAME}.index")):
        return joined(name, CHECKPOINT_NAME)
    raise CheckpointError(f"{name}: no checkpoint or run of this name")


def _copied(stored: Iterable[Stored]) -> Path:
    sources = list(stored)
    contents = repr([(*source, checksum(source.path)) for source in sources])

    def copy(folder: Path) -> None:
        log.info("%s: copying to this machine", sources[0].path)
        for source in sources:
            target = folder / divided(source.path)[1]
            with readable_errors(source.path), open_file(source.path) as stream, target.open("wb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)

    return shipped.made_once(hashlib.sha256(contents.encode()).hexdigest()[:32], copy)
