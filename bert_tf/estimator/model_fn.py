"""The model function: features, encoder, head, loss and update in one graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.checkpoints.restore import RestorePlan, initialize_from
from bert_tf.config import BertConfig
from bert_tf.estimator.describe import log_graph
from bert_tf.estimator.update import Optimization, Update
from bert_tf.modeling import heads
from bert_tf.modeling.dropout import DropElements, Dropout, no_dropout
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.tasks.base import HeadSpec

tf1 = tf.compat.v1
TRAIN, EVAL, PREDICT = (getattr(tf.estimator.ModeKeys, name) for name in ("TRAIN", "EVAL", "PREDICT"))

PROBABILITIES, LABELS = "watch/probabilities", "watch/labels"  # tensors that hooks fetch by name

Features = Mapping[str, tf.Tensor]


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


def make_model_fn(model: Model) -> Callable[[Features, str], tf.estimator.EstimatorSpec]:
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
        loss = tf.reduce_mean(losses)
        if mode == EVAL:
            labels = tf.identity(features["label_ids"], name=LABELS)
            metrics = {
                "eval_loss": tf1.metrics.mean(losses),
                "eval_accuracy": tf1.metrics.accuracy(labels, tf.argmax(logits, axis=-1)),
            }
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, predictions=predictions)
        if model.restore is not None:
            initialize_from(model.restore)
        log_graph(features, tf1.trainable_variables(), model.restore.loaded if model.restore else ())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update.apply(loss), scaffold=_scaffold())

    return model_fn


def _scaffold() -> tf1.train.Scaffold | None:
    """One process initializes its variables itself: asking each whether it is ready takes longer than a step."""
    if tf.distribute.get_replica_context().num_replicas_in_sync > 1:
        return None
    nothing_missing = tf.constant([], tf.string)
    return tf1.train.Scaffold(ready_op=nothing_missing, ready_for_local_init_op=nothing_missing)


def _dropout(model: Model) -> DropElements:
    if not model.dropout:
        return no_dropout
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return Dropout(model.seed, tf1.train.get_or_create_global_step(), replica=replica)
