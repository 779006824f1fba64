"""Execution options of the encoder: how it is computed, not what."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from bert_tf.modeling.dropout import DropElements, no_dropout


@dataclasses.dataclass(frozen=True)
class Execution:
    """Ways of computing the same numbers, unless `dtype` is not float32."""

    dropout: DropElements = no_dropout  # active in training only
    pack_tokens: bool = True  # computes real tokens only; pads only around attention
    last_layer_cls_only: bool = True  # the last layer computes only what is read
    custom_gradients: bool = True  # hand-written; keep and recompute less
    native: bool = False  # custom CPU kernels, which must be loaded
    recompute: bool = False  # keeps only layer inputs; recomputes in backward pass
    dtype: tf.DType = tf.float32  # variables, LayerNorm and softmax stay float32
