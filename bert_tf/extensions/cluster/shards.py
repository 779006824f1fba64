"""Sharded outputs: each bundle writes one under a temporary name, and all are renamed at the end.

Beam's own sink does this: the output of a bundle that is computed again is not renamed, so no row is lost or
duplicated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam
from apache_beam.coders import BytesCoder
from apache_beam.io.filebasedsink import FileBasedSink
from apache_beam.io.filesystem import CompressionTypes

from bert_tf.errors import BertError, FlagError, OutputError
from bert_tf.extensions.cluster import storage
from bert_tf.io import files, scratch

_HEX = "[0-9a-f]"


class Shards(NamedTuple):
    """Shard names of an output: PREFIX-00000-of-00004SUFFIX."""

    prefix: str
    suffix: str

    @property
    def pattern(self) -> str:
        return f"{self.prefix}-*-of-*{self.suffix}"

    @property
    def left_out(self) -> Shards:
        return Shards(f"{self.prefix}{self.suffix}.left-out", ".jsonl")

    def existing(self) -> list[str]:
        name = re.compile(rf"{re.escape(self.prefix)}-\d{{5,}}-of-\d{{5,}}{re.escape(self.suffix)}")  # not p-x-00000-... of p
        return [stored.path for stored in storage.matching(self.pattern) if name.fullmatch(stored.path)]


@dataclasses.dataclass(frozen=True)
class ShardForm:
    """Content of a shard."""

    form: Any  # of its parts, see `stream.Form`
    header: bytes = b""  # bytes before the first part


def shards_of(output: str) -> Shards:
    """Returns the shard names of an output: out/x.tsv.gz becomes out/x-00000-of-00004.tsv.gz.

    FlagError if the name would be read as a pattern: Beam finds the files to rename at the end by pattern.
    """
    if storage.is_pattern(output):
        raise FlagError(f"{output}: Apache Beam reads *, ? and [ in a name as a pattern; name another output")
    folder, name = storage.divided(output)
    plain = files.uncompressed(name)
    stem, dot, suffix = plain.rpartition(".")
    if not stem:
        stem, dot, suffix = plain, "", ""
    return Shards(f"{folder}/{stem}", f"{dot}{suffix}{name[len(plain) :]}")


def refuse_existing(shards: Shards) -> None:
    """Raises OutputError if shards exist: they would be taken for the new output's."""
    existing = shards.existing()
    if existing:
        raise OutputError(f"{existing[0]}: an earlier job has written {shards.pattern}; delete it, or name another output")


def write(shards: Shards, form: ShardForm, *, may_be_none: bool = False) -> apache_beam.PTransform:
    """Returns a transform that writes parts (bytes); `may_be_none` allows no shard instead of an empty one."""
    return apache_beam.io.Write(_Sink(shards, form, may_be_none))


def delete_unfinished(shards: Shards) -> None:
    folder, name = storage.divided(shards.prefix)
    unfinished = f"beam-temp-{name}-{_HEX * 32}"
    with contextlib.suppress(BertError):
        storage.delete([stored.path for stored in storage.matching(storage.joined(folder, f"{unfinished}/*"))])
    if not files.has_scheme(shards.prefix):  # others have no folders
        for rest in Path(folder).glob(unfinished):
            with contextlib.suppress(OSError):
                rest.rmdir()


class _Sink(FileBasedSink):
    def __init__(self, shards: Shards, form: ShardForm, may_be_none: bool) -> None:
        super().__init__(
            shards.prefix,
            BytesCoder(),
            file_name_suffix=shards.suffix,
            compression_type=CompressionTypes.UNCOMPRESSED,  # parts are compressed already
            skip_if_empty=may_be_none,
        )
        self._form, self._prefix = form, shards.prefix

    def initialize_write(self) -> Any:
        with storage.writing(self._prefix):
            return super().initialize_write()

    def open(self, temp_path: str) -> _Shard:
        with storage.writing(self._prefix):
            return _Shard(lambda: super(_Sink, self).open(temp_path), self._form)

    def write_encoded_record(self, file_handle: _Shard, encoded_value: bytes) -> None:
        with storage.writing(self._prefix):
            file_handle.write(encoded_value)

    def close(self, file_handle: _Shard) -> None:
        with storage.writing(self._prefix):
            file_handle.close()


class _Shard:
    """A shard being written; arrays are assembled on the worker's disk first."""

    def __init__(self, create: Callable[[], Any], form: ShardForm) -> None:
        self._create, self._assemble = create, form.form.assemble
        self._folder = None if self._assemble is None else scratch.folder()
        self._file: Any = create() if self._folder is None else open(Path(self._folder.name, "parts"), "wb")  # noqa: SIM115
        self._file.write(form.header)

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def close(self) -> None:
        self._file.close()
        if self._assemble is None or self._folder is None:
            return
        with self._folder as folder:
            parts, whole = Path(folder, "parts"), Path(folder, "whole")
            self._assemble(parts, whole)
            with self._create() as target, whole.open("rb") as source:
                shutil.copyfileobj(source, target)
