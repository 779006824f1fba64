"""The model function: features, encoder, head, loss and update in one graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.checkpoints.restore import RestorePlan, starting_from
from bert_tf.config import BertConfig
from bert_tf.estimator import api, pipeline, stamps
from bert_tf.estimator.describe import log_graph
from bert_tf.estimator.hooks import DIFFERING
from bert_tf.estimator.update import Optimization, Update
from bert_tf.fields import GLOBAL_WEIGHT, INPUTS, SLOT, SLOTS, TOKEN, Field
from bert_tf.graphs import HOST
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import DropElements, Dropout, Execution, no_dropout
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import Head, LossOptions, part_of_mean, trains_pooler
from bert_tf.modeling.layers import JointLookup, Lookup
from bert_tf.modeling.packing import Places, Reads, Tokens
from bert_tf.optimization import replicas
from bert_tf.optimization.parts import POOLER, Part

tf1 = tf.compat.v1
TRAIN, PREDICT = api.ModeKeys.TRAIN, api.ModeKeys.PREDICT

Features = Mapping[str, tf.Tensor]
ModelFn = Callable[[Features, str], api.EstimatorSpec]


@dataclasses.dataclass(frozen=True)
class Model:
    """Everything the graph is built from; settings only needed for training may be None."""

    config: BertConfig
    head: HeadSpec
    loss: LossOptions = dataclasses.field(default_factory=LossOptions)
    execution: Execution = dataclasses.field(default_factory=Execution)
    dropout: bool = True  # False only to compare ways of computing
    seed: int = 0
    optimization: Optimization | None = None
    restore: RestorePlan | None = None
    max_seq_length: int | None = None  # of the features; batches may be cut to their longest row
    check_replicas: bool = False  # adds what `hooks.ReplicaCheckHook` reads
    around: Callable[[Head], Head] | None = None  # wraps the head, to change its loss

    @property
    def whole_head(self) -> Head:
        head = heads.make_head(self.head)
        return head if self.around is None else self.around(head)


def make_model_fn(model: Model) -> ModelFn:
    """Returns an Estimator's `model_fn`, for batches of `fields.INPUTS` and the head's own inputs.

    It trains, or computes outputs without padding; metrics are not in the graph.
    """
    head = model.whole_head

    @tf.autograph.experimental.do_not_convert  # strategies would spend seconds on a needless rewrite
    def build(features: Features, mode: str) -> api.EstimatorSpec:
        if mode == PREDICT:
            outputs = compute_outputs(model, head, features, model.execution)
            real = {field.name: _without_padding(field, outputs[field.name], features) for field in head.outputs}
            return api.EstimatorSpec(mode, predictions=real)
        if model.optimization is None:
            raise ValueError("a model without `optimization` cannot be trained")
        stamps.mark_ready(features[pipeline.READY])
        features = dict(zip(features, stamps.gate(stamps.BATCH, list(features.values()))))
        tf.identity(features[pipeline.GLOBAL_TOKENS], name=stamps.TOKENS)
        unread: frozenset[Part] = frozenset() if trains_pooler(head, model.config) else frozenset({POOLER})
        optimization = dataclasses.replace(model.optimization, frozen=model.optimization.frozen | unread)
        update = Update(optimization, adaptation=model.execution.adaptation, defers=not head.reads_word_table)

        def loss_of(features: Features, micro_batch: int | tf.Tensor) -> tf.Tensor:
            execution = dataclasses.replace(model.execution, dropout=_dropout(model, micro_batch))
            outputs = compute_outputs(model, head, features, execution, update.lookup, draws=True)
            return part_of_mean(head.losses(outputs, features, model.loss), features[GLOBAL_WEIGHT])

        with starting_from(model.restore):
            loss, train_op = update.minimize(loss_of, features)
        _describe(model, head, features)
        if model.check_replicas:
            tf.identity(replicas.differing(tf1.trainable_variables()), name=DIFFERING)
        return api.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=_scaffold())

    def model_fn(features: Features, mode: str) -> api.EstimatorSpec:  # an Estimator inspects the argument names
        return build(features, mode)

    return model_fn


def _describe(model: Model, head: Head, features: Features) -> None:
    if replicas.number() == 0:
        seen = {name: features[name] for name in (*(field.name for field in (*INPUTS, *head.inputs)), *head.targets)}
        log_graph(seen, model.max_seq_length, tf1.trainable_variables(), model.restore.provided if model.restore else ())


def compute_outputs(
    model: Model, head: Head, features: Features, execution: Execution, lookup: Lookup = tf.gather, *, draws: bool = False
) -> dict[str, tf.Tensor]:
    """Returns the head's outputs by name, with padding: [B, ...], [B, T, ...] or [B, S, ...].

    `lookup` reads rows of the word table, see `embeddings`; `draws` samples words if the head trains on a sample.
    """
    input_ids, input_mask, segment_ids = (features[field.name] for field in INPUTS)
    drawn = _drawn(model, head, features) if draws else None
    joint = None if drawn is None else JointLookup(lookup, drawn)
    encoded = bert(
        input_ids,
        input_mask,
        segment_ids,
        model.config,
        execution,
        reads=_reads(head, features),
        lookup=joint or lookup,
    )
    if joint is not None:
        encoded = encoded._replace(words=joint.words)
    return head.compute(encoded, features, model.config, execution)


def _reads(head: Head, features: Features) -> Reads:
    if head.reads_places:
        return Places(features[head.reads_places], features[SLOTS.name])
    return Tokens.ALL if head.reads_tokens else Tokens.FIRST


def _drawn(model: Model, head: Head, features: Features) -> tf.Tensor | None:
    """Returns the sampled word ids to train the head on: equal on all replicas and in all micro-batches of a step."""
    draw = getattr(head, "draw", None)
    if draw is None:
        return None
    with tf.device(HOST):
        seed = tf.stack([tf.constant(model.seed, tf.int64), tf1.train.get_or_create_global_step().read_value()])
    drawn: tf.Tensor | None = draw(features, model.config, seed)
    return drawn


def _without_padding(field: Field, output: tf.Tensor, features: Features) -> tf.Tensor:
    """Returns [B, ...] of rows, or [real tokens, ...], or [real slots, ...]."""
    if field.axis == TOKEN:
        output = tf.boolean_mask(output, tf.cast(features["input_mask"], tf.bool))
    elif field.axis == SLOT:
        output = tf.boolean_mask(output, tf.sequence_mask(features[SLOTS.name], tf.shape(output)[1]))
    return tf.identity(output)  # a fetched result would not be fused with the product before it


def _scaffold() -> tf1.train.Scaffold | None:
    """Skips the readiness check of each variable in a single process: it takes longer than a step."""
    if replicas.count() > 1:
        return None
    nothing_missing = tf.constant([], tf.string)
    return tf1.train.Scaffold(ready_op=nothing_missing, ready_for_local_init_op=nothing_missing)


def _dropout(model: Model, micro_batch: int | tf.Tensor) -> DropElements:
    if not model.dropout:
        return no_dropout
    step = tf1.train.get_or_create_global_step()
    return Dropout(model.seed, step, replica=replicas.number(), micro_batch=micro_batch)
