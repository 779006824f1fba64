"""Formats of files of vectors, and their names; imports no TensorFlow."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from bert_tf.errors import FlagError

NPY, NPZ, PARQUET, JSONL, PUBLISHED = "npy", "npz", "parquet", "jsonl", "published"
FORMATS = (NPY, NPZ, PARQUET, JSONL, PUBLISHED)
ARRAYS = (NPY, NPZ, PARQUET)  # written at the end, so never to a pipe
FLOAT32 = "float32"
DTYPES = (FLOAT32, "float16")

_GZ = ".gz"
_SUFFIXES = {".npy": NPY, ".npz": NPZ, ".parquet": PARQUET, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL}


class VectorForm(NamedTuple):
    """One of `FORMATS`, perhaps compressed with gzip."""

    kind: str
    compressed: bool = False


def form_of(output: str, asked: str | None) -> VectorForm:
    """Format from a path or `-`; `asked` (of `FORMATS`) overrides its suffix except for compression.

    FlagError for an unknown suffix or compressed arrays.
    """
    name = output.lower()
    plain = name.removesuffix(_GZ)
    kind = asked or _SUFFIXES.get(PurePath(plain).suffix) or (JSONL if output == "-" else None)
    if kind is None:
        raise FlagError(f"{output}: name it .npy, .npz, .parquet, .jsonl or .jsonl.gz, or add --output_format")
    if kind in ARRAYS and plain != name:
        raise FlagError(f"{output}: cannot write {kind} with {_GZ}; leave it out of the name")
    return VectorForm(kind, plain != name)
