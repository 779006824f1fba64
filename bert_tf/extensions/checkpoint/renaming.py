"""Variables under their published names and their names in other layouts: Hugging Face's and the TF 2 Model Garden's.

Model Garden: the Keras variables of its `BertEncoder`, as its converter of published checkpoints writes them
(tensorflow/models, official/nlp/tools/tf1_bert_checkpoint_converter_lib.py, name version 2). Attention kernels and
biases have an axis for the heads: H heads of size K = D // H for hidden size D. Such checkpoints load by
`encoder.load_weights(prefix)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.checkpoints.names import HEADS, WRAPPERS, layers_in, modern, name_pairs

Array = npt.NDArray[Any]
Change = Callable[[Array], Array]

_GARDEN_EMBEDDINGS = {
    "word_embeddings": "word_embeddings/embeddings",
    "token_type_embeddings": "type_embeddings/embeddings",
    "position_embeddings": "position_embedding/embeddings",
    "LayerNorm/gamma": "embeddings/layer_norm/gamma",
    "LayerNorm/beta": "embeddings/layer_norm/beta",
}
_GARDEN_LAYER = {  # of layer_N, by prefix of the published names
    "attention/self": "self_attention",
    "attention/output/dense": "self_attention/attention_output",
    "attention/output/LayerNorm": "self_attention_layer_norm",
    "intermediate/dense": "intermediate",
    "output/dense": "output",
    "output/LayerNorm": "output_layer_norm",
}
# Of encoders with a head; of object-based Keras models.
_BEFORE = re.compile(rf"^{WRAPPERS}*(?:bert\.|bert_encoder(?:_v2)?(?:_\d+)?/)?")


class Renamed(NamedTuple):
    """A published variable in another layout."""

    name: str
    there: Change  # converts its values to the layout
    back: Change  # converts its values from the layout


def huggingface(layers: int) -> dict[str, Renamed]:
    """Returns each published variable's Hugging Face form, the encoder's names without `bert.`."""
    pairs = (*name_pairs(layers), *HEADS)
    changes = [_transposed if pair.transposed else _same for pair in pairs]
    return {pair.published: Renamed(pair.huggingface, change, change) for pair, change in zip(pairs, changes)}


def model_garden(layers: int, heads: int) -> dict[str, Renamed]:
    return {pair.published: _in_garden(pair.published, heads) for pair in name_pairs(layers)}


def _in_garden(published: str, heads: int) -> Renamed:
    part, _, rest = published.partition("/")[2].partition("/")
    if part == "embeddings":
        return Renamed(_GARDEN_EMBEDDINGS[rest], _same, _same)
    if part == "pooler":
        return Renamed(f"pooler_transform/{rest.rpartition('/')[2]}", _same, _same)
    layer, _, rest = rest.partition("/")
    beginning = next(name for name in _GARDEN_LAYER if rest.startswith(f"{name}/"))
    name = f"transformer/{layer}/{_GARDEN_LAYER[beginning]}{rest[len(beginning) :]}"
    return Renamed(name, *_of_heads(rest, heads))


def _of_heads(rest: str, heads: int) -> tuple[Change, Change]:
    """Returns the reshapes that add and remove the head axis of attention's arrays."""
    if rest.startswith("attention/self"):  # [D, D] to [D, H, K], [D] to [H, K]
        return (
            lambda array: array.reshape(*array.shape[:-1], heads, -1),
            lambda array: array.reshape(*array.shape[:-2], -1),
        )
    if rest == "attention/output/dense/kernel":  # [D, D] to [H, K, D]
        return lambda array: array.reshape(heads, -1, array.shape[-1]), lambda array: array.reshape(-1, array.shape[-1])
    return _same, _same


def published(names: Iterable[str]) -> dict[str, tuple[str, Change]]:
    """Returns published name and value conversion for names of one layout; names in no table are kept."""
    listed = list(names)
    layers = layers_in(listed)
    tables = (huggingface(layers), model_garden(layers, 1))  # the way back from the garden needs no number of heads
    known = {renamed.name: (name, renamed.back) for table in tables for name, renamed in table.items()}
    return {name: known.get(modern(_BEFORE.sub("", name)), (name, _same)) for name in listed}


def _same(array: Array) -> Array:
    return array


def _transposed(array: Array) -> Array:
    return np.ascontiguousarray(array.T)
