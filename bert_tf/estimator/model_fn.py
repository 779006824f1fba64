"""The model function: features, encoder, head, loss and update in one graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.checkpoints.restore import RestorePlan, initialize_from
from bert_tf.config import BertConfig
from bert_tf.estimator.describe import log_graph
from bert_tf.estimator.replica_check import watch_variables
from bert_tf.estimator.update import Optimization, Update
from bert_tf.features.spec import SENTENCE_FIELDS
from bert_tf.inputs import pipeline
from bert_tf.modeling import heads
from bert_tf.modeling.dropout import DropElements, Dropout, no_dropout
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.optimization import replicas
from bert_tf.tasks.base import HeadSpec

tf1 = tf.compat.v1
TRAIN, EVAL, PREDICT = (getattr(tf.estimator.ModeKeys, name) for name in ("TRAIN", "EVAL", "PREDICT"))

# Tensors of evaluation that hooks fetch by name, [B, ...] each.
PROBABILITIES, LABELS, LOSSES, ROWS = (f"watch/{name}" for name in ("probabilities", "labels", "losses", "rows"))

Features = Mapping[str, tf.Tensor]
ModelFn = Callable[[Features, str], tf.estimator.EstimatorSpec]


@dataclasses.dataclass(frozen=True)
class Model:
    """Everything that the graph is built from; what only training needs may be None."""

    config: BertConfig
    head: HeadSpec
    execution: Execution = dataclasses.field(default_factory=Execution)
    dropout: bool = True  # False compares ways of computing
    seed: int = 0
    optimization: Optimization | None = None
    restore: RestorePlan | None = None
    check_replicas: bool = False  # adds what `replica_check.ReplicaCheckHook` reads


def make_model_fn(model: Model) -> ModelFn:
    """Returns the `model_fn` of an Estimator for batches of `features.spec.SENTENCE_FIELDS`."""

    def model_fn(features: Features, mode: str) -> tf.estimator.EstimatorSpec:
        execution, lookup, update = model.execution, tf.gather, None
        if mode == TRAIN:
            update = Update(model.optimization)
            lookup = update.lookup
            execution = dataclasses.replace(execution, dropout=_dropout(model))
        inputs = (features[name] for name in ("input_ids", "input_mask", "segment_ids"))
        encoded = bert(*inputs, model.config, execution, first_only=True, lookup=lookup)
        logits = heads.classification(encoded.pooled, model.head.num_labels, model.config, execution)
        predictions = {"probabilities": tf.nn.softmax(logits, name=PROBABILITIES)}
        if mode == PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions=predictions)
        losses = heads.classification_loss(logits, features["label_ids"])  # [B]
        if mode == EVAL:
            for name, value in ((LABELS, features["label_ids"]), (LOSSES, losses), (ROWS, features[pipeline.ROWS])):
                tf.identity(value, name=name)
            return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_mean(losses), predictions=predictions)
        loaded = model.restore.loaded if model.restore else ()
        if loaded:
            initialize_from(model.restore)
        if replicas.number() == 0:
            seen = {field.name: features[field.name] for field in SENTENCE_FIELDS}
            log_graph(seen, tf1.trainable_variables(), loaded)
        if model.check_replicas:
            watch_variables()
        loss = heads.part_of_mean(losses, features[pipeline.GLOBAL_BATCH_SIZE])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update.apply(loss), scaffold=_scaffold())

    return model_fn


def _scaffold() -> tf1.train.Scaffold | None:
    """One process initializes its variables itself: asking each whether it is ready takes longer than a step."""
    if replicas.count() > 1:
        return None
    nothing_missing = tf.constant([], tf.string)
    return tf1.train.Scaffold(ready_op=nothing_missing, ready_for_local_init_op=nothing_missing)


def _dropout(model: Model) -> DropElements:
    if not model.dropout:
        return no_dropout
    return Dropout(model.seed, tf1.train.get_or_create_global_step(), replica=replicas.number())
