"""Options for the vector of a text; each start imports them, so they import little."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Union

from bert_tf.errors import FlagError, unknown_name
from bert_tf.head_spec import MEAN, POOLINGS, VECTORS, HeadSpec
from bert_tf.run_layout import NORMALIZE, POOLING
from bert_tf.settings import group, setting

if TYPE_CHECKING:
    from bert_tf.batch.trained import Trained
    from bert_tf.config import BertConfig

Layers = Union[str, int, Iterable[int]]


@dataclasses.dataclass(frozen=True)
class VectorOptions:
    """Defines the vector of a text."""

    TITLE: ClassVar[str] = "Vectors"

    pooling: str | None = setting(
        None, f"pooling of token vectors: {', '.join(POOLINGS)}; default: the model's, else {MEAN}", choices=POOLINGS
    )
    layers: tuple[int, ...] = setting("-1", "layers to concatenate: -1 is the last, -2 the one before, 0 the first")
    normalize: bool | None = setting(
        None, "normalize vectors to length 1, so that dot products are cosines; default: as the model, else not"
    )
    tokens: bool = setting(False, "one vector per token instead of one per text")

    def __post_init__(self) -> None:
        """Raises FlagError for an unknown pooling or what are no layers."""
        object.__setattr__(self, "layers", layer_numbers(self.layers))
        if self.pooling not in (None, *POOLINGS):
            raise FlagError(f"pooling: {unknown_name('pooling', str(self.pooling), POOLINGS)}")

    def of_model(self, trained: Trained) -> VectorOptions:
        """With the model's pooling and scaling, unless others are named; raises FlagError if a pooling is not computed here."""
        if self.tokens and self.pooling is not None:
            raise FlagError(f"--pooling={self.pooling}: each token has a vector of its own; leave it out")
        pooling = self.pooling or (MEAN if self.tokens else trained.record.get(POOLING, MEAN))
        if pooling not in POOLINGS:
            raise FlagError(
                f"{trained.prefix}: the model's pooling is {pooling}, which is unsupported; to pool in another way, add"
                f" --pooling: {', '.join(POOLINGS)}"
            )
        of_texts = not self.tokens and bool(trained.record.get(NORMALIZE))
        normalize = of_texts if self.normalize is None else self.normalize
        return dataclasses.replace(self, pooling=pooling, normalize=normalize)

    def width(self, config: BertConfig) -> int:
        return config.hidden_size * len(self.layers)

    def head(self, config: BertConfig) -> HeadSpec:
        """Of options with a pooling; raises FlagError if the model lacks a layer."""
        most = config.num_hidden_layers
        wrong = [layer for layer in self.layers if not -most <= layer < most]
        if wrong:
            raise FlagError(f"--layers: no layer {wrong[0]}: the model has 0 to {most - 1}, or from the last -1 to {-most}")
        return HeadSpec(
            self.width(config), VECTORS, (("layers", self.layers), ("pooling", None if self.tokens else self.pooling))
        )


@dataclasses.dataclass(frozen=True)
class ServedVectors:
    """Flags of `serve`."""

    TITLE: ClassVar[str] = "Vectors"

    encode: bool = setting(False, "also offer POST /encode; always on for vector models")
    options: VectorOptions = group(VectorOptions, without=("normalize", "tokens"))


def layer_numbers(layers: Layers) -> tuple[int, ...]:
    """Parses --layers, or a program's value; FlagError for duplicates."""
    listed: Iterable[Any] = layers.split(",") if isinstance(layers, str) else (layers,) if isinstance(layers, int) else layers
    try:
        numbers = tuple(int(layer) if isinstance(layer, str) else operator.index(layer) for layer in listed)
    except (TypeError, ValueError) as error:
        raise FlagError(f"--layers={layers}: write whole numbers with commas, as -1,-2") from error
    if not numbers or len(set(numbers)) < len(numbers):
        raise FlagError(f"--layers={layers}: {'a layer is named twice' if numbers else 'name one at least'}")
    return numbers
