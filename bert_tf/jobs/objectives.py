"""What training optimizes and watches: the loss, the metric of the best checkpoint, the target; from flags and the task."""

from __future__ import annotations

import math
from collections.abc import Callable

from bert_tf.errors import FlagError, unknown_name
from bert_tf.estimator.evaluations import Target
from bert_tf.features.columns import Features
from bert_tf.jobs.settings import TrainSettings
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.tasks.base import Task

MakeLossOptions = Callable[[Features], LossOptions]  # from the features of the training split, to balance its classes

_LOSS = "loss"
_BALANCED = "balanced"


def best_by(train: TrainSettings, task: Task) -> str | None:
    """Result that selects the best checkpoint, such as eval_accuracy; None without evaluation during training."""
    if not train.eval_every_n_steps:
        for flag in ("best_metric", "early_stopping_patience", "target_metric"):
            if getattr(train, flag):
                raise FlagError(f"--{flag}={getattr(train, flag)} needs evaluations: give --eval_every_n_steps as well")
        return None
    name = train.best_metric or task.family.metrics[0]
    if name not in (*task.family.metrics, _LOSS):
        raise FlagError(f"--best_metric: {unknown_name('metric', name, (*task.family.metrics, _LOSS))}")
    return f"eval_{name}"


def target(train: TrainSettings, task: Task) -> Target | None:
    """Parses --target_metric; None if not set; FlagError if the task lacks the metric."""
    text = train.target_metric
    if text is None:
        if train.stop_at_target:
            raise FlagError("--stop_at_target: which target? give --target_metric as well, as accuracy:0.8")
        return None
    name, _, number = text.partition(":")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FlagError(f"--target_metric={text}: write a metric and a number, as accuracy:0.8 or loss:0.4")
    if name not in (*task.family.metrics, _LOSS):
        raise FlagError(f"--target_metric: {unknown_name('metric', name, (*task.family.metrics, _LOSS))}")
    return Target(f"eval_{name}", value)


def loss_options(train: TrainSettings, task: Task) -> MakeLossOptions:
    """Returns a function from features to loss options; FlagError unless weights are positive, one per label."""
    taken = heads.of(task.family.head).loss_options
    for flag, given in (("class_weights", train.class_weights), ("label_smoothing", train.label_smoothing)):
        if given and flag not in taken:
            raise FlagError(f"--{flag}={given}: {task.name} has no classes, its kind is {task.family.kind}")
    if train.label_smoothing >= 1.0:
        raise FlagError(f"--label_smoothing={train.label_smoothing}: must be below 1")
    if train.class_weights == _BALANCED:
        return lambda features: LossOptions(task.family.class_weights(features), train.label_smoothing)
    options = LossOptions(_listed(train.class_weights, task), train.label_smoothing)
    return lambda _: options


def _listed(text: str | None, task: Task) -> tuple[float, ...]:
    if not text:
        return ()
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        weights = ()
    if len(weights) != len(task.family.labels) or not all(0.0 < weight < float("inf") for weight in weights):
        raise FlagError(
            f"--class_weights={text}: give {_BALANCED}, or {len(task.family.labels)} positive numbers with commas,"
            f" one for each of {', '.join(task.family.labels)}"
        )
    return weights
