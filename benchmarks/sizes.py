"""Sizes of models measured with random weights (Devlin et al., 2018; Turc et al., 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bert_tf.config import BertConfig


class Size(NamedTuple):
    """Layers, hidden size and heads; the intermediate size is four times the hidden size."""

    layers: int
    hidden: int
    heads: int

    def config(self, vocab_size: int) -> BertConfig:
        return BertConfig(
            vocab_size=vocab_size,
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.hidden,
        )


DEFAULT = "default"  # the checkpoint in use, with its weights
SIZES: Mapping[str, Size] = {
    "tiny": Size(2, 128, 2),
    "mini": Size(4, 256, 4),
    "medium": Size(8, 512, 8),
    "base": Size(12, 768, 12),
}


def parameters(config: BertConfig) -> int:
    """Returns an encoder's number of layer weights; embeddings are looked up and do not count."""
    d, i = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * (4 * d * d + 2 * d * i + 9 * d + i)
