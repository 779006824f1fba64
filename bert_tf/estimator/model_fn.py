"""The model function: features, encoder, head, loss and update in one graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.checkpoints.restore import RestorePlan, initialize_from
from bert_tf.config import BertConfig
from bert_tf.estimator.describe import log_graph
from bert_tf.modeling import heads, layers
from bert_tf.modeling.encoder import bert
from bert_tf.optimization.adamw import AdamW, AdamWConfig
from bert_tf.optimization.gradients import clip_by_global_norm, dense_gradients
from bert_tf.optimization.schedules import linear_warmup_decay
from bert_tf.tasks.base import HeadSpec

tf1 = tf.compat.v1
TRAIN, EVAL, PREDICT = (getattr(tf.estimator.ModeKeys, name) for name in ("TRAIN", "EVAL", "PREDICT"))

# Tensors that hooks fetch by name.
LOSS, LEARNING_RATE, GRADIENT_NORM = "watch/loss", "watch/learning_rate", "watch/gradient_norm"
PROBABILITIES, LABELS = "watch/probabilities", "watch/labels"
NOT_FINITE = "the loss or its gradient is not a finite number"

Features = Mapping[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Optimization:
    """How the weights are updated."""

    learning_rate: float  # peak
    warmup_steps: int
    total_steps: int
    clip_norm: float = 1.0
    adamw: AdamWConfig = dataclasses.field(default_factory=AdamWConfig)


@dataclasses.dataclass(frozen=True)
class Model:
    """Everything that the graph is built from; what only training needs may be None."""

    config: BertConfig
    head: HeadSpec
    seed: int = 0
    optimization: Optimization | None = None
    restore: RestorePlan | None = None


def make_model_fn(model: Model) -> Callable[[Features, str], tf.estimator.EstimatorSpec]:
    """Returns the `model_fn` of an Estimator for batches of `features.spec.SENTENCE_FIELDS`."""

    def model_fn(features: Features, mode: str) -> tf.estimator.EstimatorSpec:
        dropout = layers.no_dropout
        if mode == TRAIN:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            dropout = layers.Dropout(model.seed, tf1.train.get_or_create_global_step(), replica=replica)
        inputs = (features[name] for name in ("input_ids", "input_mask", "segment_ids"))
        encoded = bert(*inputs, model.config, dropout=dropout)
        logits = heads.classification(encoded.pooled, model.head.num_labels, model.config, dropout=dropout)
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
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=_train_op(loss, model.optimization))

    return model_fn


def _train_op(loss: tf.Tensor, optimization: Optimization) -> tf.Operation:
    """One update; the step counts up when it is done. Numbers that are not finite stop the run before any weight changes."""
    step = tf1.train.get_or_create_global_step()
    rate = linear_warmup_decay(
        step.read_value(),
        peak=optimization.learning_rate,
        warmup_steps=optimization.warmup_steps,
        total_steps=optimization.total_steps,
    )
    variables = tf1.trainable_variables()
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync
    gradients, norm = clip_by_global_norm(dense_gradients(loss / replicas, variables), optimization.clip_norm)
    for name, value in ((LOSS, loss), (LEARNING_RATE, rate), (GRADIENT_NORM, norm)):
        tf1.summary.scalar(name.rpartition("/")[-1], tf.identity(value, name=name))
    finite = tf.debugging.Assert(tf.math.is_finite(norm + loss), [NOT_FINITE])
    with tf.control_dependencies([finite]):
        gradients = [tf.identity(gradient) for gradient in gradients]
    optimizer = AdamW(rate, step.read_value(), optimization.adamw)
    with tf.control_dependencies([optimizer.apply_dense_gradients(gradients, variables)]):
        return step.assign_add(1, read_value=False)
