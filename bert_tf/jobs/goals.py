"""Metrics to evaluate, to select the best checkpoint by and to stop at, from flags and the task."""

from __future__ import annotations

import math

from bert_tf.errors import FlagError, unknown_name
from bert_tf.estimator.evaluations import Target
from bert_tf.jobs.settings import TrainSettings
from bert_tf.tasks.base import Task

_LOSS = "loss"


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
