"""Together: several models compute the layers that have the same weights once."""

from __future__ import annotations

from bert_tf.extension import Extension

EXTENSION = Extension()
