"""What --eval_every_n_steps, --best_metric and --early_stopping_patience mean to a task."""

from __future__ import annotations

from bert_tf.commands.classifier_flags import TrainSettings
from bert_tf.errors import FlagError, unknown_name
from bert_tf.tasks.base import Task

_LOSS = "loss"


def best_by(train: TrainSettings, task: Task) -> str | None:
    """Returns the result that tells the best checkpoint, eval_accuracy; None where none is evaluated while it trains.

    Raises:
      FlagError: flags contradict each other, or the task has no such metric.
    """
    if not train.eval_every_n_steps:
        for flag in ("best_metric", "early_stopping_patience"):
            if getattr(train, flag):
                raise FlagError(f"--{flag}={getattr(train, flag)} needs evaluations: give --eval_every_n_steps as well")
        return None
    name = train.best_metric or task.metrics[0]
    if name not in (*task.metrics, _LOSS):
        raise FlagError(f"--best_metric: {unknown_name('metric', name, (*task.metrics, _LOSS))}")
    return f"eval_{name}"
