"""Figures of a report: spreads and ratios of rounds, sizes of models, operations that a step requires.

Counted are matrix products over real tokens, a multiplication and an addition as two operations, whatever an
implementation spends. If the head reads only [CLS], the last layer computes keys and values of all tokens and everything
else of [CLS]. Embeddings are looked up, not multiplied; element-wise work is not counted.

Shapes: n tokens of an example, D hidden size, I intermediate size.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from bert_tf.config import BertConfig

Lengths = Union[npt.NDArray[np.integer[Any]], Sequence[int]]


def _sized(layers: int, hidden: int, heads: int) -> BertConfig:
    return BertConfig(
        vocab_size=1, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden
    )


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
}


def parameters(config: BertConfig) -> int:
    """Returns an encoder's number of layer weights; embeddings are looked up and do not count."""
    d, i = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * (4 * d * d + 2 * d * i + 9 * d + i)


def forward(lengths: Lengths, config: BertConfig, *, num_labels: int, of_tokens: bool = False) -> float:
    """Returns the operations for the logits of examples, given their lengths in tokens."""
    examples, tokens = float(len(lengths)), float(np.sum(lengths, dtype=np.float64))
    pairs = float(np.sum(np.square(lengths, dtype=np.float64)))  # each token attends to those of its own example
    d, i = config.hidden_size, config.intermediate_size
    # Query, key, value and output; the two products of the feed-forward part; scores and context.
    whole_layer = tokens * 4 * 2 * d * d + tokens * 2 * 2 * d * i + pairs * 2 * 2 * d
    if of_tokens:
        return config.num_hidden_layers * whole_layer + tokens * 2 * d * num_labels
    last_layer = (
        tokens * 2 * 2 * d * d  # key, value
        + examples * (2 * 2 * d * d + 2 * 2 * d * i)  # query and output, feed-forward, of [CLS]
        + tokens * 2 * 2 * d  # scores and context of [CLS]
    )
    head = examples * (2 * d * d + 2 * d * num_labels)  # pooler, logits
    return (config.num_hidden_layers - 1) * whole_layer + last_layer + head


def training(lengths: Lengths, config: BertConfig, *, num_labels: int, of_tokens: bool = False) -> float:
    """Returns the operations of forward and backward pass: each product has two for its gradients."""
    return 3 * forward(lengths, config, num_labels=num_labels, of_tokens=of_tokens)


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
