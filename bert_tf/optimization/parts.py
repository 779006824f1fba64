"""Parts of the model that are trained differently: frozen, or at a lower rate. Does not import TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple, Union

from bert_tf.config import MOST_LAYERS
from bert_tf.errors import FlagError, unknown_name

Part = Union[str, int]  # EMBEDDINGS, POOLER, or the number of a layer

EMBEDDINGS, POOLER = "embeddings", "pooler"

_OWNER = re.compile(rf"bert/(?:(?P<part>{EMBEDDINGS}|{POOLER})(?:_project)?|encoder/layer_(?P<layer>\d+))/")
_LAYERS = re.compile(r"(?P<first>\d{1,20})(?:-(?P<last>\d{1,20}))?")


def part_of(variable: str) -> Part | None:
    """Part of a variable; None for the head."""
    match = _OWNER.match(variable)
    if match is None:
        return None
    return match["part"] or int(match["layer"])


def parse_frozen(text: str | None) -> frozenset[Part]:
    """Parses --freeze, as embeddings,0-5,pooler; None or empty for none; FlagError for an unknown part."""
    frozen: set[Part] = set()
    for entry in filter(None, (text or "").split(",")):
        name = entry.strip()
        match = _LAYERS.fullmatch(name)
        if match:
            first, last = int(match["first"]), int(match["last"] or match["first"])
            if last < first:
                raise FlagError(f"--freeze: {name}: the lower layer comes first, as in {last}-{first}")
            if last >= MOST_LAYERS:
                raise FlagError(f"--freeze: {name[:40]}: layers are numbers from 0 to {MOST_LAYERS - 1}")
            frozen.update(range(first, last + 1))
        elif name in (EMBEDDINGS, POOLER):
            frozen.add(name)
        else:
            raise FlagError(f"--freeze: {unknown_name('part', name, (EMBEDDINGS, POOLER, 'N', 'N-M'))}")
    if text and not frozen:
        raise FlagError(f"--freeze={text}: names no part")
    return frozenset(frozen)


def counted(layers: int, *, shared: bool) -> str:
    """Layers with weights of their own, for messages."""
    return f"weights of {layers} layers, which the others share" if shared else f"{layers} layers"


def check_layers(frozen: Collection[Part], layers: int, *, shared: bool = False) -> None:
    """Raises FlagError if a frozen layer exceeds the model; `shared`: several layers have the weights of each of `layers`."""
    beyond = [part for part in frozen if isinstance(part, int) and part >= layers]
    if beyond:
        raise FlagError(f"--freeze: layer {min(beyond)}: the model has {counted(layers, shared=shared)}, 0 to {layers - 1}")


class LayerDecay(NamedTuple):
    """Layer-wise decay of the learning rate: lower, more general layers move less (Howard and Ruder, 2018).

    Counted as in BEiT (Bao et al., 2021): head and pooler learn at the full rate, the last layer at `factor` times that, each
    layer at `factor` times the rate of the one above, embeddings below the first. ELECTRA's code intends the same but starts
    one power too low, with factor^2 at the last layer.
    """

    factor: float = 1.0
    layers: int = 0  # of the encoder

    def factor_of(self, part: Part | None) -> float:
        heights: dict[Part | None, int] = {EMBEDDINGS: 0, POOLER: self.layers + 1, None: self.layers + 1}
        height = part + 1 if isinstance(part, int) else heights[part]
        return self.factor ** (self.layers + 1 - height)
