"""A way to call an exported model: what goes in, and what comes out."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.export.graph import Tensors

tf1 = tf.compat.v1


DEFAULT = "serving_default"  # that is called where none is named


class Signature(NamedTuple):
    """Tensors by the names that clients know them by."""

    inputs: Tensors
    outputs: Tensors


def aligned(*texts: tf.Tensor) -> list[tf.Tensor]:
    """Returns [B] strings of several inputs; a request in which they differ in number fails, in place of mixing its rows up."""
    found: list[tf.Tensor] = tf.unstack(tf.stack(texts), num=len(texts))
    return found


def strings(*names: str) -> dict[str, tf.Tensor]:
    """Returns placeholders of [B] strings in UTF-8."""
    return {name: tf1.placeholder(tf.string, [None], name) for name in names}
