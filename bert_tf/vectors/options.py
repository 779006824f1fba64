"""Options for the vector of a text, and names of the formats of files; imports no TensorFlow."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, ClassVar, NamedTuple, Union

from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.head_spec import MEAN, POOLINGS, VECTORS, HeadSpec
from bert_tf.settings import setting

NPY, NPZ, PARQUET, JSONL, PUBLISHED = "npy", "npz", "parquet", "jsonl", "published"
FORMATS = (NPY, NPZ, PARQUET, JSONL, PUBLISHED)
ARRAYS = (NPY, NPZ, PARQUET)  # written at the end, so never to a pipe
FLOAT32 = "float32"
DTYPES = (FLOAT32, "float16")

_GZ = ".gz"
_SUFFIXES = {".npy": NPY, ".npz": NPZ, ".parquet": PARQUET, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL}

Layers = Union[str, int, Iterable[int]]


@dataclasses.dataclass(frozen=True)
class VectorOptions:
    """Defines the vector of a text."""

    TITLE: ClassVar[str] = "Vectors"

    pooling: str = setting(MEAN, f"pooling of token vectors: {', '.join(POOLINGS)}", choices=POOLINGS)
    layers: tuple[int, ...] = setting("-1", "layers to concatenate: -1 is the last, -2 the one before, 0 the first")
    normalize: bool = setting(False, "normalize vectors to length 1, so that dot products are cosines")
    tokens: bool = setting(False, "one vector per token instead of one per text")

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", layer_numbers(self.layers))

    def width(self, config: BertConfig) -> int:
        return config.hidden_size * len(self.layers)

    def head(self, config: BertConfig) -> HeadSpec:
        """Raises FlagError if the model lacks a layer."""
        most = config.num_hidden_layers
        wrong = [layer for layer in self.layers if not -most <= layer < most]
        if wrong:
            raise FlagError(f"--layers: no layer {wrong[0]}: the model has 0 to {most - 1}, or from the last -1 to {-most}")
        return HeadSpec(
            self.width(config), VECTORS, (("layers", self.layers), ("pooling", None if self.tokens else self.pooling))
        )


def layer_numbers(layers: Layers) -> tuple[int, ...]:
    """Parses --layers, or a program's value; FlagError for duplicates."""
    given: Iterable[Any] = layers.split(",") if isinstance(layers, str) else (layers,) if isinstance(layers, int) else layers
    try:
        numbers = tuple(int(layer) if isinstance(layer, str) else operator.index(layer) for layer in given)
    except (TypeError, ValueError) as error:
        raise FlagError(f"--layers={layers}: write whole numbers with commas, as -1,-2") from error
    if not numbers or len(set(numbers)) < len(numbers):
        raise FlagError(f"--layers={layers}: {'a layer is named twice' if numbers else 'name one at least'}")
    return numbers


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
