"""Figures of a report: spreads and ratios of rounds, sizes of models, operations that a step requires.

Counted are matrix products over real tokens, a multiplication and an addition as two operations, whatever an
implementation spends. If a head reads only [CLS], the last layer computes keys and values of all tokens and everything
else of [CLS]. Scores of disentangled attention are three products, whatever its vectors of distances cost. Embeddings are
looked up, not multiplied; element-wise work is not counted.

Shapes: n tokens of an example, D hidden size, I intermediate size.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from bert_tf.config import BertConfig
from bert_tf.head_spec import CONTRASTIVE, PRETRAINING, SIMILARITY, SPAN, TAGS, HeadSpec

Lengths = Union[npt.NDArray[np.integer[Any]], Sequence[int]]


def _sized(layers: int, hidden: int, heads: int) -> BertConfig:
    return BertConfig(
        vocab_size=1, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden
    )


# Of config.json on the hub: microsoft/deberta-v3-small (He et al., 2021), answerdotai/ModernBERT-base (Warner et al., 2024).
_DEBERTA = {
    "model_type": "deberta-v2",
    "vocab_size": 1,
    "hidden_size": 768,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "relative_attention": True,
    "position_buckets": 256,
    "position_biased_input": False,
    "pos_att_type": "p2c|c2p",
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}
_MODERNBERT = {
    "model_type": "modernbert",
    "vocab_size": 1,
    "hidden_size": 768,
    "num_hidden_layers": 22,
    "num_attention_heads": 12,
    "intermediate_size": 1152,
}
DEFAULT = "default"  # the checkpoint in use, with its weights
# Models measured with random weights (Devlin et al., 2018; Turc et al., 2019), with the vocabulary of the checkpoint.
SIZES: Mapping[str, BertConfig] = {
    "tiny": _sized(2, 128, 2),
    "mini": _sized(4, 256, 4),
    "medium": _sized(8, 512, 8),
    "base": _sized(12, 768, 12),
    # Of other architectures; their weights are random too.
    "electra-base": dataclasses.replace(_sized(12, 768, 12), model_type="electra", pooler_act="gelu_erf"),
    "roberta-base": dataclasses.replace(_sized(12, 768, 12), model_type="roberta", type_vocab_size=1),
    "distilbert-base": dataclasses.replace(_sized(6, 768, 12), model_type="distilbert", type_vocab_size=0, pooler_act="relu"),
    "deberta-v3-small": BertConfig.from_dict(_DEBERTA, source="huggingface"),
    "modernbert-base": BertConfig.from_dict(_MODERNBERT, source="huggingface"),
}


def parameters(config: BertConfig) -> int:
    """Returns an encoder's number of layer weights; embeddings are looked up and do not count."""
    d, i = config.hidden_size, config.intermediate_size
    vectors = 9 * d + i if config.biases else 2 * d
    return config.num_hidden_layers * (4 * d * d + (3 if config.gated else 2) * d * i + vectors)


_READ_TOKENS = (SPAN, TAGS, SIMILARITY, CONTRASTIVE, PRETRAINING)  # heads


def _head(spec: HeadSpec, config: BertConfig, *, rows: float, tokens: float, masks: float) -> float:
    d, of_pooled = config.hidden_size, rows * (2 * config.hidden_size**2 + 2 * config.hidden_size * spec.num_labels)
    if spec.kind in (SIMILARITY, CONTRASTIVE):
        return 0.0  # the mean of token vectors
    if spec.kind == PRETRAINING:
        return of_pooled + masks * (2 * d * d + 2 * d * config.vocab_size)
    return tokens * 2 * d * spec.num_labels if spec.kind in _READ_TOKENS else of_pooled


def forward(lengths: Lengths, config: BertConfig, spec: HeadSpec, masks: float = 0.0) -> float:
    """Returns the operations for the outputs of rows, given their lengths in tokens, and how many words are masked in all."""
    rows, tokens = float(len(lengths)), float(np.sum(lengths, dtype=np.float64))
    d, i = config.hidden_size, (3 if config.gated else 2) * config.intermediate_size
    of_pair = (4 if config.position_kind.by_distance else 2) * 2 * d  # scores and context
    beside = [_beside(lengths, config.window_of_layer(layer)) for layer in range(config.num_hidden_layers)]
    # Each token attends to those of its own row that are near enough.
    pairs = [float(np.sum(np.multiply(lengths, 2 * near + 1) - near * (near + 1))) for near in beside]
    # Query, key, value and output; the products of the feed-forward part.
    whole_layers = [tokens * (4 * 2 * d * d + 2 * d * i) + count * of_pair for count in pairs]
    head = _head(spec, config, rows=rows, tokens=tokens, masks=masks)
    if spec.kind in _READ_TOKENS:
        return sum(whole_layers) + head
    last_layer = (
        tokens * 2 * 2 * d * d  # key, value
        + rows * (2 * 2 * d * d + 2 * d * i)  # query and output, feed-forward, of [CLS]
        + float(np.sum(beside[-1] + 1)) * of_pair  # of [CLS]
    )
    return sum(whole_layers[:-1]) + last_layer + head


def _beside(lengths: Lengths, window: int) -> npt.NDArray[np.float64]:
    """Tokens on each side of one in the middle that it attends to, [E]; half of the window."""
    others = np.subtract(lengths, 1.0)
    return np.minimum(others, window // 2) if window else others


def training(lengths: Lengths, config: BertConfig, spec: HeadSpec, masks: float = 0.0) -> float:
    """Returns the operations of forward and backward pass: each product has two for its gradients."""
    return 3 * forward(lengths, config, spec, masks)


def vectors(lengths: Lengths, config: BertConfig, spec: HeadSpec, masks: float = 0.0) -> float:
    """Returns the operations for vectors of rows: means of all tokens, whatever the head."""
    return forward(lengths, config, dataclasses.replace(spec, kind=SIMILARITY), masks)


# By the worker of a suite.
OPERATIONS: Mapping[str, Callable[[Lengths, BertConfig, HeadSpec, float], float]] = {
    "train": training,
    "predict": forward,
    "encode": vectors,
}


class Spread(NamedTuple):
    median: float
    lowest: float
    highest: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Spread:
    """Returns the spread of the ratios within each round; ValueError if the numbers of rounds differ.

    A machine that is slow for a round slows both sides: the ratio within a round says more than that of two medians.
    """
    if len(values) != len(baseline):
        raise ValueError(f"{len(values)} rounds beside {len(baseline)}")
    return spread([value / base for value, base in zip(values, baseline)])
