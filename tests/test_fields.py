from __future__ import annotations

from bert_tf.fields import HIDDEN, Field


def test_the_encoder_says_how_wide_its_vectors_are():
    assert Field("vectors", width=HIDDEN).sized(8).shape(3, 5) == (3, 8)
    assert Field("logits", width=2).sized(8).shape(3, 5) == (3, 2)
