"""Execution options of the encoder: how it is computed, apart from what it computes."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from bert_tf.modeling.dropout import DropElements, no_dropout


@dataclasses.dataclass(frozen=True)
class Execution:
    """Ways of computing that lead to the same numbers.

    Attributes:
      dropout: `dropout.Dropout` in training.
      pack_tokens: computes real tokens only; padding exists around attention alone.
      last_layer_cls_only: computes of the last layer only what is read of it.
      dtype: of activations and matrix products; variables, LayerNorm and softmax stay float32. The numbers differ if it
        is not float32.
      custom_gradients: hand-written gradients, which keep and recompute less than those derived op by op.
      native: kernels of one's own on the CPU, see `native`; they have to be loaded.
      recompute: keeps of each layer its input alone, and computes the rest again for the gradient.
    """

    dropout: DropElements = no_dropout
    pack_tokens: bool = True
    last_layer_cls_only: bool = True
    custom_gradients: bool = True
    native: bool = False
    recompute: bool = False
    dtype: tf.DType = tf.float32
