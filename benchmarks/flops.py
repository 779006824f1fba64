"""Operations that a classification step requires, whatever an implementation spends.

Counted are matrix products over real tokens, a multiplication and an addition as two operations. If the head reads
only [CLS], the last layer computes keys and values of all tokens and everything else of [CLS]. Embeddings are
looked up, not multiplied; element-wise work is not counted.

Shapes: n tokens of an example, D hidden size, I intermediate size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from bert_tf.config import BertConfig

Lengths = Union[npt.NDArray[np.integer[Any]], Sequence[int]]


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
