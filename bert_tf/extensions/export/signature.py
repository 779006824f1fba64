"""Signatures of a SavedModel."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.batch.graph import Tensors

tf1 = tf.compat.v1

DEFAULT = "serving_default"  # the signature that is called if none is named


class Signature(NamedTuple):
    """Tensors of one signature by their public names."""

    inputs: Tensors
    outputs: Tensors


def aligned(*texts: tf.Tensor) -> list[tf.Tensor]:
    """[B] strings of several inputs; the request fails if their lengths differ, instead of mixing up rows."""
    rows: list[tf.Tensor] = tf.unstack(tf.stack(texts), num=len(texts))
    return rows


def strings(*names: str) -> dict[str, tf.Tensor]:
    """Placeholders of [B] UTF-8 strings."""
    return {name: tf1.placeholder(tf.string, [None], name) for name in names}
