"""Together: several models compute the layers that have the same weights once (docs/together.md)."""

from __future__ import annotations

from bert_tf.extension import Extension

EXTENSION = Extension(predicts_several=f"{__name__}.predict:predict", computes_several=f"{__name__}.engine:Together")
