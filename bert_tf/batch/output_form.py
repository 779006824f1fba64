"""Format of a predictions file, from the output's name or as requested."""

from __future__ import annotations

import gzip
from pathlib import PurePath
from typing import NamedTuple

from bert_tf.errors import FlagError
from bert_tf.tasks import tables

_GZ = ".gz"
# Names of which a reader would expect something else.
_OTHERS = (".parquet", ".feather", ".arrow", ".xls", ".xlsx", ".ods", ".npy", ".npz", ".pkl", ".yaml", ".yml", ".xml", ".html")
_COMPRESSED = (".bz2", ".xz", ".zst", ".lz4", ".zip", ".7z", ".tar", ".tgz")


class OutputForm(NamedTuple):
    form: str = tables.TSV  # one of tables.FORMATS
    compressed: bool = False

    @property
    def assemble(self) -> None:
        """None: the file is the concatenation of its parts."""

    def __str__(self) -> str:
        return self.form + _GZ * self.compressed

    def encode(self, text: str) -> bytes:
        """Compresses each part to a gzip member of its own; files of several members are legal (RFC 1952)."""
        return gzip.compress(text.encode(), mtime=0) if self.compressed else text.encode()


def of(output: str, asked: str | None) -> OutputForm:
    """Format of an output; TSV if the name (as of a pipe) does not tell; FlagError for an unsupported one.

    `asked` overrides the name's format, but only the name decides about compression.
    """
    name = output.lower()
    plain = name.removesuffix(_GZ)
    known = ", ".join(f".{form}" for form in tables.FORMATS)
    if PurePath(plain).suffix in _COMPRESSED:
        raise FlagError(f"{output}: cannot compress to {PurePath(plain).suffix}; name it {known} or one of these with {_GZ}")
    if asked is None and PurePath(plain).suffix in _OTHERS:
        raise FlagError(f"{output}: cannot write that; name it {known} or one of these with {_GZ}, or add --output_format")
    return OutputForm(asked or tables.form_of(plain) or tables.TSV, name != plain)
