"""Signatures of pairs in a SavedModel. Shapes: B examples, D hidden size."""

from __future__ import annotations

import tensorflow as tf

from bert_tf.batch.trained import Trained
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.sentences import outputs, read_texts
from bert_tf.extensions.export.saved_model.signatures import DEFAULT, VECTORS, Signature, aligned, strings
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.modeling.heads import registry as heads


def alike(exported: ExportJob, tokenizer: GraphTokenizer) -> dict[str, Signature]:
    """Similarity of `text_a` and `text_b` by their vectors, and the vector of each `text`."""
    inputs = strings("text_a", "text_b")
    size = tf.size(inputs["text_a"])
    vectors = _directions(exported.trained, tokenizer, tf.concat(aligned(*inputs.values()), axis=0))  # [2 B, D]
    cosine = tf.reduce_sum(vectors[:size] * vectors[size:], axis=-1)
    score = cosine * getattr(exported.family, "highest_score", 1.0)
    text = strings("text")
    return {
        DEFAULT: Signature(inputs, {"cosine": cosine, "score": score}),
        VECTORS: Signature(text, {"vectors": _directions(exported.trained, tokenizer, text["text"])}),
    }


def _directions(trained: Trained, tokenizer: GraphTokenizer, texts: tf.Tensor) -> tf.Tensor:
    """[B, D] vectors of length 1."""
    return heads.make_head(trained.head).serving(outputs(trained, read_texts(trained, tokenizer, texts, None)))["vectors"]
