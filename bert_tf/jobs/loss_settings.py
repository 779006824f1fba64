"""Loss options from --class_weights, --label_smoothing and the task."""

from __future__ import annotations

from collections.abc import Callable

from bert_tf.errors import FlagError
from bert_tf.features.columns import Features
from bert_tf.jobs.settings import TrainSettings
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.tasks.base import Task

MakeLossOptions = Callable[[Features], LossOptions]  # from the features of the training split, to balance its classes

_BALANCED = "balanced"


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
