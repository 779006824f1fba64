"""Form of a file of predictions: by the name of the output, or as asked for."""

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
    """A format of `tables.FORMATS`, and whether it is compressed."""

    form: str = tables.TSV
    compressed: bool = False

    @property
    def assemble(self) -> None:
        """None: the parts of a file, one after the other, are the file."""

    def __str__(self) -> str:
        """As a name ends."""
        return self.form + _GZ * self.compressed

    def encode(self, text: str) -> bytes:
        """Returns a part of a file: compressed it is a gzip member of its own, and files of several are legal (RFC 1952)."""
        return gzip.compress(text.encode(), mtime=0) if self.compressed else text.encode()


def of(output: str, asked: str | None) -> OutputForm:
    """Returns what to write.

    Args:
      output: path; a name that says nothing, as that of a pipe, stands for TSV.
      asked: format that overrides what the name says; whether to compress is up to the name.

    Raises:
      FlagError: the name says something that is not written here.
    """
    name = output.lower()
    plain = name.removesuffix(_GZ)
    known = ", ".join(f".{form}" for form in tables.FORMATS)
    if PurePath(plain).suffix in _COMPRESSED:
        raise FlagError(f"{output}: cannot compress to {PurePath(plain).suffix}; name it {known} or one of these with {_GZ}")
    if asked is None and PurePath(plain).suffix in _OTHERS:
        raise FlagError(f"{output}: cannot write that; name it {known} or one of these with {_GZ}, or add --output_format")
    return OutputForm(asked or tables.form_of(plain) or tables.TSV, name != plain)
