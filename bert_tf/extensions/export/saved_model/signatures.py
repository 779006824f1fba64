"""Signatures of an exported model: what one is, and all by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import tensorflow as tf

from bert_tf import head_spec
from bert_tf.batch import graph
from bert_tf.batch.graph import Tensors
from bert_tf.batch.trained import Trained
from bert_tf.extensions.export.job import ExportJob
from bert_tf.extensions.export.saved_model.tokenizer import GraphTokenizer
from bert_tf.extensions.export.tokenizer_tables import tables
from bert_tf.fields import INPUTS, ROW, SLOT, TOKEN, Field
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io.log_form import log
from bert_tf.kinds import Registry
from bert_tf.modeling.heads import registry as heads

tf1 = tf.compat.v1

IDS, EXAMPLES, VECTORS = "ids", "examples", "vectors"
DEFAULT = "serving_default"  # the signature that is called if none is named

_IDS, _MASK, _SEGMENTS = (field.name for field in INPUTS)


class Signature(NamedTuple):
    """Tensors of one signature by their public names."""

    inputs: Tensors
    outputs: Tensors


Client = Callable[[ExportJob, GraphTokenizer], Mapping[str, Signature]]

# By kind of head, how clients send raw text. Kinds registered elsewhere accept only ids.
_CLIENTS = Registry[Client](
    "client",
    dict.fromkeys((CLASSIFICATION, REGRESSION, MULTI_LABEL), f"{__package__}.sentences:labelled"),
)


def aligned(*texts: tf.Tensor) -> list[tf.Tensor]:
    """[B] strings of several inputs; the request fails if their lengths differ, instead of mixing up rows."""
    rows: list[tf.Tensor] = tf.unstack(tf.stack(texts), num=len(texts))
    return rows


def strings(*names: str) -> dict[str, tf.Tensor]:
    """Placeholders of [B] UTF-8 strings."""
    return {name: tf1.placeholder(tf.string, [None], name) for name in names}


def build(exported: ExportJob) -> dict[str, Signature]:
    trained = exported.trained
    inputs = graph.inputs(trained)
    made = {IDS: Signature(inputs, _outputs(trained, inputs)), EXAMPLES: _examples(trained)}  # ids from any tokenizer
    client = None if trained.head.kind == head_spec.VECTORS else _CLIENTS.get(trained.head.kind)
    vocabulary = trained.vocabulary
    beyond = vocabulary.file if vocabulary.own_rules else "added tokens" if vocabulary.text_rules.added else None
    if client is not None and beyond:
        log.warning("the graph accepts only ids: no TensorFlow operation splits texts as its %s require", beyond)
    if client is None or beyond:
        return {**made, DEFAULT: made[IDS]}
    tokenizer = GraphTokenizer(tables(vocabulary, lower_case=trained.lower_case))
    signatures = {**made, **client(exported, tokenizer)}
    embeds = _CLIENTS.get(head_spec.VECTORS)  # of an extension
    return signatures if embeds is None or VECTORS in signatures else {**signatures, **embeds(exported, tokenizer)}


def _examples(trained: Trained) -> Signature:
    """The same from serialized `tf.train.Example`s; a missing mask is all ones, missing segments all zeros."""
    serialized = tf1.placeholder(tf.string, [None], EXAMPLES)
    fields = (*INPUTS, *heads.make_head(trained.head).inputs)
    ragged = tf.io.parse_example(serialized, {field.name: tf.io.RaggedFeature(tf.int64) for field in fields})
    tokens = tf.shape(ragged[_IDS].to_tensor())[1]
    given = {field.name: _padded(ragged[field.name], field, tokens) for field in fields}
    real = tf.sequence_mask(ragged[_IDS].row_lengths(), tokens, tf.int32)
    given[_MASK] = tf.where((ragged[_MASK].row_lengths() > 0)[:, None], given[_MASK], real)
    return Signature({EXAMPLES: serialized}, _outputs(trained, given))


def _outputs(trained: Trained, features: Tensors) -> dict[str, tf.Tensor]:
    """Outputs for clients, and the raw head outputs."""
    computed = graph.compute(
        trained, {**features, _SEGMENTS: _known(features[_SEGMENTS], max(trained.config.type_vocab_size, 2))}
    )
    return {
        **{raw(name) if name in computed.served else name: logits for name, logits in computed.logits.items()},
        **computed.served,
    }


def _known(segments: tf.Tensor, count: int) -> tf.Tensor:
    """Segments with an assertion that the model has an embedding for each; an invalid one would go unnoticed.

    Uses the operation itself, since the functions of `tf.debugging` get different names in each export.
    """
    message = f"segment_ids are 0 to {count - 1}: 0 for the first text, 1 for the second"
    is_known = tf.reduce_all((segments >= 0) & (segments < count))
    with tf.control_dependencies([tf.raw_ops.Assert(condition=is_known, data=[message])]):
        return tf.identity(segments)


def raw(name: str) -> str:
    """Name of a raw head output whose own name is taken by a client output."""
    return f"raw_{name}"


def _padded(values: tf.RaggedTensor, field: Field, tokens: tf.Tensor) -> tf.Tensor:
    """[B], [B, T] or [B, S] values, depending on the field's axis, padded."""
    widths: dict[str, int | tf.Tensor] = {ROW: 1, TOKEN: tokens, SLOT: -1}
    padded = values.to_tensor(int(field.padding), shape=tf.stack([-1, widths[field.axis]]))
    return tf.cast(padded[:, 0] if field.axis == ROW else padded, field.dtype)
