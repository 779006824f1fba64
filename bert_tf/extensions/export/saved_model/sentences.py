"""Signatures for texts and text pairs.

Shapes: B examples, N rows, L labels, D hidden size.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bert_tf.batch import graph
from bert_tf.batch.graph import Tensors
from bert_tf.batch.trained import Trained
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.rows import CUTS, Part, averaged, lay_out, lengths
from bert_tf.extensions.export.saved_model.signatures import DEFAULT, Signature, strings
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.features.long_text import WINDOWS
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.decision import DECISION, PUBLISHED
from bert_tf.tasks.sentence.scores import THRESHOLD

tf1 = tf.compat.v1


class Read(NamedTuple):
    """Examples as rows."""

    features: Tensors  # `INPUTS` by name
    examples: tf.Tensor  # [N] example of each row


def read_texts(trained: Trained, tokenizer: GraphTokenizer, first: tf.Tensor, second: tf.Tensor | None) -> Read:
    """Builds model inputs from texts [B] as `features.sentences.build`; `second` is None for single texts."""
    texts = tf.range(tf.size(first))
    ids = tokenizer.pieces(first if second is None else tf.concat([first, second], axis=0)).ids
    token_counts = lengths(ids)
    sizes, others = (
        (token_counts, tf.zeros_like(token_counts))
        if second is None
        else (token_counts[: tf.size(first)], token_counts[tf.size(first) :])
    )
    is_pair = tf.cast(others > 0, tf.int32)  # as published, a second text without pieces does not count
    cut = CUTS[trained.long_text](sizes, others, trained.max_seq_length - 2 - is_pair)
    of_row = tf.gather(texts, cut.example_ids)
    seconds = [] if second is None else [Part(ids, of_row + tf.size(first), cut.second)]
    features = lay_out(Part(ids, of_row, cut.first), seconds, tf.gather(is_pair, cut.example_ids), trained.vocabulary)
    return Read(features, cut.example_ids)


def labelled(exported: ExportJob, tokenizer: GraphTokenizer) -> dict[str, Signature]:
    """Classification, regression and multi-label: `text_a`, and `text_b` if the model reads pairs."""
    trained, head = exported.trained, heads.make_head(exported.trained.head)
    inputs = strings("text_a", "text_b") if exported.reads_pairs else strings("text_a")
    sentences = read_texts(trained, tokenizer, inputs["text_a"], inputs.get("text_b"))
    served = head.serving(outputs(trained, sentences))
    return {DEFAULT: Signature(inputs, {**served, **_decided(exported, served)})}


def _decided(exported: ExportJob, served: Tensors) -> Tensors:
    """[B] name of the predicted class, or [B, L] whether each label applies; empty for regression.

    The name is empty where the model abstains. With a rule for label sets also [B, L] whether each class is in the set.
    """
    kind, decision = exported.trained.head.kind, getattr(exported.family, DECISION, PUBLISHED)
    if kind not in (CLASSIFICATION, MULTI_LABEL):
        return {}
    shares: tf.Tensor = served["probabilities"]
    if kind == MULTI_LABEL:
        return {"applies": shares >= tf.constant(decision.thresholds or THRESHOLD, tf.float32)}
    best = tf.cast(shares[:, 1] >= decision.thresholds[0], tf.int64) if decision.thresholds else tf.argmax(shares, axis=-1)
    label = tf.gather(tf.constant(exported.family.labels), best)
    if decision.abstain_below is not None:
        is_sure = tf.gather(shares, best, axis=1, batch_dims=1) >= tf.constant(decision.abstain_below)
        label = tf.where(is_sure, label, "")
    if decision.set_from is None:
        return {"label": label}
    return {"label": label, "in_label_set": shares >= tf.constant(decision.set_from)}


def outputs(trained: Trained, sentences: Read) -> Tensors:
    """[B, ...] head outputs, averaged over the windows of a text."""
    return averaged(graph.compute(trained, sentences.features).logits, sentences.examples, trained.long_text == WINDOWS)
