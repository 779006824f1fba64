"""Effect of a task's head on the memory forecast."""

from __future__ import annotations

import dataclasses

from bert_tf.config import BertConfig
from bert_tf.modeling.heads.base import Head
from bert_tf.profiling.forecast.compute_options import POOLER, ComputeOptions


def with_head(options: ComputeOptions, head: Head, config: BertConfig) -> ComputeOptions:
    """Adds the head to the options of a step; drops options that it does not support."""
    return dataclasses.replace(
        options,
        head=tuple(head.variables(config).values()),
        head_memory=head.memory,
        frozen=options.frozen if head.reads_pooled else options.frozen | {POOLER},
        last_layer_cls_only=options.last_layer_cls_only and not head.reads_tokens,
        places=options.places if head.reads_places else 0,
        tied_words=head.reads_word_table,
        defer_embeddings=options.defer_embeddings and not head.reads_word_table,
    )
