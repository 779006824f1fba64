"""Names of vector file formats; imports no TensorFlow."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from bert_tf.errors import FlagError

NPY, NPZ, PARQUET, JSONL, PUBLISHED = "npy", "npz", "parquet", "jsonl", "published"
FORMATS = (NPY, NPZ, PARQUET, JSONL, PUBLISHED)
ARRAYS = (NPY, NPZ, PARQUET)  # made at the end, so never into a pipe
DTYPES = FLOAT32, FLOAT16 = "float32", "float16"

_GZ = ".gz"
_SUFFIXES = {".npy": NPY, ".npz": NPZ, ".parquet": PARQUET, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL}


class VectorForm(NamedTuple):
    """One of `FORMATS`, perhaps compressed with gzip."""

    kind: str
    compressed: bool = False


def of(output: str, asked: str | None) -> VectorForm:
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
