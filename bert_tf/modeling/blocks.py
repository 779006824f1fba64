"""Blocks of an encoder: attention, feed-forward layer, and where they are normalized.

Shapes: N rows of tokens, D hidden size; M rows of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling import layers
from bert_tf.modeling.attention import Sequences, self_attention
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.packing import Layout, Selection
from bert_tf.modeling.positions import Positions

tf1 = tf.compat.v1


class LayerPlan(NamedTuple):
    """What a layer computes: its number, and the tokens that attend and are attended to."""

    number: int
    bias: tf.Tensor  # from `attention.mask_bias`
    layout: Layout  # of all tokens
    queries: Selection  # tokens that it computes
    positions: Positions


Block = Callable[[LayerPlan, BertConfig, tf.Tensor, Execution], tf.Tensor]


def norm_last(plan: LayerPlan, config: BertConfig, rows: tf.Tensor, execution: Execution) -> tf.Tensor:
    """Normalizes each sum (Devlin et al., 2018): [N, D] to [M, D]; variable scope of a layer."""
    queries = plan.queries.take(rows)
    with tf1.variable_scope("attention"):
        context = self_attention(_sequences(plan, config, queries, rows), config, execution)
        with tf1.variable_scope("output"):
            attended = layers.add_and_norm(context, queries, config, execution)  # [M, D]
    wide = _wide(attended, config, execution)
    with tf1.variable_scope("output"):
        return layers.add_and_norm(wide, attended, config, execution)


def norm_first(plan: LayerPlan, config: BertConfig, rows: tf.Tensor, execution: Execution) -> tf.Tensor:
    """Normalizes what is read, not the sums, and not twice before the first layer (Xiong et al., 2020; Warner et al., 2024)."""
    residual = plan.queries.take(rows)
    with tf1.variable_scope("attention"):
        normal = layers.layer_norm(rows, config, execution) if plan.number else rows
        context = self_attention(_sequences(plan, config, plan.queries.take(normal), normal), config, execution)
        with tf1.variable_scope("output"):
            attended = layers.add(context, residual, config.attention_probs_dropout_prob, config, execution)  # [M, D]
    with tf1.variable_scope("intermediate"):
        normal = layers.layer_norm(attended, config, execution)
    wide = execution.dropout(_wide(normal, config, execution), config.hidden_dropout_prob)
    with tf1.variable_scope("output"):
        return layers.add(wide, attended, 0.0, config, execution)


BLOCKS: Mapping[bool, Block] = {False: norm_last, True: norm_first}  # by `BertConfig.norm_first`


def _sequences(plan: LayerPlan, config: BertConfig, queries: tf.Tensor, rows: tf.Tensor) -> Sequences:
    window = config.window_of_layer(plan.number)
    return Sequences(queries, rows, plan.bias, plan.queries, plan.layout, plan.positions, window)


def _wide(rows: tf.Tensor, config: BertConfig, execution: Execution) -> tf.Tensor:
    """The first half of the feed-forward layer, [M, D] to [M, intermediate size]."""
    activated = layers.gated if config.gated else layers.activated
    with tf1.variable_scope("intermediate"):
        return activated(rows, config.intermediate_size, config, execution, scope="dense")
