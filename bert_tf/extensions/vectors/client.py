"""Signature of vectors in a SavedModel of any other kind."""

from __future__ import annotations

from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.sentences import outputs, read_texts
from bert_tf.extensions.export.saved_model.signatures import VECTORS, Signature, strings
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.head_spec import MEAN, HeadSpec
from bert_tf.head_spec import VECTORS as KIND


def embedded(exported: ExportJob, tokenizer: GraphTokenizer) -> dict[str, Signature]:
    """The mean vector of the tokens of each `text`."""
    inputs, trained = strings("text"), exported.trained
    trained.warn_of_means(f"the signature {VECTORS}")
    encoder = trained.with_head(HeadSpec(trained.config.hidden_size, KIND, (("pooling", MEAN),)))
    return {VECTORS: Signature(inputs, outputs(encoder, read_texts(encoder, tokenizer, inputs["text"], None)))}
