"""What --class_weights and --label_smoothing mean to a task."""

from __future__ import annotations

from bert_tf.commands.classifier_flags import TrainSettings
from bert_tf.errors import FlagError
from bert_tf.estimator.model_fn import LossOptions
from bert_tf.features.spec import LabelArray
from bert_tf.tasks.base import REGRESSION, Task
from bert_tf.tasks.labels import balanced_weights

_BALANCED = "balanced"


def check(train: TrainSettings, task: Task) -> None:
    """Checks the flags, before a file is written.

    Raises:
      FlagError: one does not fit the task, or is no list of positive numbers, one for each label.
    """
    for flag, given in (("class_weights", train.class_weights), ("label_smoothing", train.label_smoothing)):
        if given and task.head.kind == REGRESSION:
            raise FlagError(f"--{flag}={given}: {task.name} has no classes, it is a regression")
    if train.label_smoothing >= 1.0:
        raise FlagError(f"--label_smoothing={train.label_smoothing}: must be below 1")
    if train.class_weights != _BALANCED:
        _listed(train.class_weights, task)


def loss_options(train: TrainSettings, task: Task, label_ids: LabelArray) -> LossOptions:
    """Returns how the loss of training is computed.

    Args:
      train: settings that `check` let pass.
      task: what is learned.
      label_ids: of the training split, to balance.
    """
    if train.class_weights == _BALANCED:
        return LossOptions(balanced_weights(label_ids, task.head), train.label_smoothing)
    return LossOptions(_listed(train.class_weights, task), train.label_smoothing)


def _listed(text: str | None, task: Task) -> tuple[float, ...]:
    if not text:
        return ()
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        weights = ()
    if len(weights) != len(task.labels) or not all(0.0 < weight < float("inf") for weight in weights):
        raise FlagError(
            f"--class_weights={text}: give {_BALANCED}, or {len(task.labels)} positive numbers with commas,"
            f" one for each of {', '.join(task.labels)}"
        )
    return weights
