"""The model function: features, encoder, head, loss and update in one graph."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import tensorflow as tf

from bert_tf.checkpoints.restore import RestorePlan, initialize_from
from bert_tf.config import BertConfig
from bert_tf.estimator import stamps
from bert_tf.estimator.describe import log_graph
from bert_tf.estimator.replica_check import watch_variables
from bert_tf.estimator.update import Optimization, Update
from bert_tf.features.spec import SENTENCE_FIELDS
from bert_tf.inputs import pipeline
from bert_tf.modeling import heads
from bert_tf.modeling.dropout import DropElements, Dropout, no_dropout
from bert_tf.modeling.embeddings import Lookup
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.optimization import replicas
from bert_tf.tasks.base import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec

tf1 = tf.compat.v1
TRAIN, EVAL, PREDICT = (getattr(tf.estimator.ModeKeys, name) for name in ("TRAIN", "EVAL", "PREDICT"))

# Tensors of evaluation that hooks fetch by name: [B, L], and [B] the numbers of the rows.
LOGITS, ROWS = "watch/logits", "watch/rows"
TOKENS = "watch/tokens"  # of training: a scalar int32, the real tokens of the step over all replicas

Features = Mapping[str, tf.Tensor]
ModelFn = Callable[[Features, str], tf.estimator.EstimatorSpec]


@dataclasses.dataclass(frozen=True)
class LossOptions:
    """How the loss of training differs from the plain one, for `heads.classification_loss` and `heads.multi_label_loss`."""

    class_weights: tuple[float, ...] = ()
    label_smoothing: float = 0.0


@dataclasses.dataclass(frozen=True)
class Model:
    """Everything that the graph is built from; what only training needs may be None."""

    config: BertConfig
    head: HeadSpec
    loss: LossOptions = dataclasses.field(default_factory=LossOptions)
    execution: Execution = dataclasses.field(default_factory=Execution)
    dropout: bool = True  # False compares ways of computing
    seed: int = 0
    optimization: Optimization | None = None
    restore: RestorePlan | None = None
    max_seq_length: int | None = None  # of the features; batches are shorter where they are cut to their longest row
    check_replicas: bool = False  # adds what `replica_check.ReplicaCheckHook` reads


def make_model_fn(model: Model) -> ModelFn:
    """Returns the `model_fn` of an Estimator for batches of `features.spec.SENTENCE_FIELDS`."""

    def model_fn(features: Features, mode: str) -> tf.estimator.EstimatorSpec:
        if mode != TRAIN:
            logits = tf.identity(_logits(model, features, model.execution), name=LOGITS)
            if mode == PREDICT:
                return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
            tf.identity(features[pipeline.ROWS], name=ROWS)
            _describe(model, features)
            loss = tf.reduce_mean(_losses(model, mode, logits, features["label_ids"]))
            return tf.estimator.EstimatorSpec(mode, loss=loss, predictions={"logits": logits})
        stamps.mark_ready(features[pipeline.READY])
        features = dict(zip(features, stamps.gate(stamps.BATCH, list(features.values()))))
        tf.identity(features[pipeline.GLOBAL_TOKENS], name=TOKENS)
        update = Update(model.optimization)

        def loss_of(features: Features, micro_batch: int | tf.Tensor) -> tf.Tensor:
            execution = dataclasses.replace(model.execution, dropout=_dropout(model, micro_batch))
            logits = _logits(model, features, execution, update.lookup)
            losses = _losses(model, mode, logits, features["label_ids"])  # [B]
            return heads.part_of_mean(losses, features[pipeline.GLOBAL_BATCH_SIZE])

        loss, train_op = update.minimize(loss_of, features)
        if model.restore and model.restore.loaded:
            initialize_from(model.restore)
        _describe(model, features)
        if model.check_replicas:
            watch_variables()
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=_scaffold())

    return model_fn


def _describe(model: Model, features: Features) -> None:
    if replicas.number() == 0:
        seen = {field.name: features[field.name] for field in SENTENCE_FIELDS}
        log_graph(seen, model.max_seq_length, tf1.trainable_variables(), model.restore.loaded if model.restore else ())


def _logits(model: Model, features: Features, execution: Execution, lookup: Lookup = tf.gather) -> tf.Tensor:
    inputs = (features[name] for name in ("input_ids", "input_mask", "segment_ids"))
    encoded = bert(*inputs, model.config, execution, first_only=True, lookup=lookup)
    return heads.classification(encoded.pooled, model.head.num_labels, model.config, execution)


def _losses(model: Model, mode: str, logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    options = dataclasses.asdict(model.loss) if mode == TRAIN else {}
    return {
        CLASSIFICATION: functools.partial(heads.classification_loss, **options),
        REGRESSION: heads.regression_loss,
        MULTI_LABEL: functools.partial(heads.multi_label_loss, **options),
    }[model.head.kind](logits, labels)


def _scaffold() -> tf1.train.Scaffold | None:
    """One process initializes its variables itself: asking each whether it is ready takes longer than a step."""
    if replicas.count() > 1:
        return None
    nothing_missing = tf.constant([], tf.string)
    return tf1.train.Scaffold(ready_op=nothing_missing, ready_for_local_init_op=nothing_missing)


def _dropout(model: Model, micro_batch: int | tf.Tensor) -> DropElements:
    if not model.dropout:
        return no_dropout
    step = tf1.train.get_or_create_global_step()
    return Dropout(model.seed, step, replica=replicas.number(), micro_batch=micro_batch)
