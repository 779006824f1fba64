"""Names and shapes of BERT's variables in Hugging Face's layout and in the TF 2 Model Garden's.

Model Garden: the Keras variables of its `BertEncoder`, as its converter of published checkpoints writes them
(tensorflow/models, official/nlp/tools/tf1_bert_checkpoint_converter_lib.py, name version 2). Attention kernels and
biases have an axis for the heads: H heads of size K = D // H for hidden size D. Such checkpoints load by
`encoder.load_weights(prefix)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.checkpoints.names import NamePair, name_pairs, pairs_of

Array = npt.NDArray[Any]
Change = Callable[[Array], Array]

# Heads of fine-tuning and pre-training: published and Hugging Face's names.
CLASSIFIER = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
ANSWERS = {"cls/squad/output_weights": "qa_outputs.weight", "cls/squad/output_bias": "qa_outputs.bias"}
PRETRAINING = (
    *pairs_of("cls/predictions/transform/dense", "cls.predictions.transform.dense"),
    *pairs_of("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
    NamePair("cls/predictions/output_bias", "cls.predictions.bias", False),
    NamePair("cls/seq_relationship/output_weights", "cls.seq_relationship.weight", False),
    NamePair("cls/seq_relationship/output_bias", "cls.seq_relationship.bias", False),
)
HEADS = (*(NamePair(*names, False) for names in {**CLASSIFIER, **ANSWERS}.items()), *PRETRAINING)
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
_LAYER = re.compile(r"(?:^|[./])layer[._](\d+)[./]")
# Before all names of a model that was saved in a wrapper: of several GPUs, compiled, of a trainer, of sentence-transformers.
_WRAPPERS = r"(?:module\.|_orig_mod\.|model\.|0\.auto_model\.)"
_WRAPPED = re.compile(rf"^{_WRAPPERS}+")
# Of encoders with a head; of object-based Keras models.
_BEFORE = re.compile(rf"^{_WRAPPERS}*(?:bert\.|bert_encoder(?:_v2)?(?:_\d+)?/)?")


class Renamed(NamedTuple):
    """A published variable in another layout."""

    name: str
    there: Change  # converts its values to the layout
    back: Change  # converts its values from the layout


def layers_in(names: Iterable[str]) -> int:
    return 1 + max((int(found[1]) for name in names for found in [_LAYER.search(name)] if found), default=-1)


def huggingface(layers: int) -> dict[str, Renamed]:
    """Returns each published variable's Hugging Face form, the encoder's names without `bert.`."""
    pairs = (*name_pairs(layers), *HEADS)
    return {
        pair.published: Renamed(pair.huggingface, *((_transposed,) * 2 if pair.transposed else (_same,) * 2)) for pair in pairs
    }


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
    known = _known(layers_in(listed))
    return {name: known.get(modern(_BEFORE.sub("", name)), (name, _same)) for name in listed}


def _known(layers: int) -> Mapping[str, tuple[str, Change]]:
    tables = (huggingface(layers), model_garden(layers, 1))  # the way back from the garden needs no number of heads
    return {renamed.name: (name, renamed.back) for table in tables for name, renamed in table.items()}


def wrapped_in(names: Collection[str]) -> str:
    """Returns the prefix of a wrapper before all names, empty if there is none or some have another."""
    found = {match[0] if (match := _WRAPPED.match(name)) else "" for name in names}
    return found.pop() if len(found) == 1 else ""


def modern(name: str) -> str:
    """Returns today's name of a tensor: files from the first PyTorch BERT name LayerNorm's parts as Google did."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _same(array: Array) -> Array:
    return array


def _transposed(array: Array) -> Array:
    return np.ascontiguousarray(array.T)
