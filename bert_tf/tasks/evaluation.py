"""What a model reaches on labelled examples: from logits to metrics and loss.

Shapes: E examples, L logits.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bert_tf import metrics as task_metrics
from bert_tf.features.spec import LabelArray
from bert_tf.tasks import scores
from bert_tf.tasks.base import CLASSIFICATION, PURPOSES, REGRESSION, HeadSpec


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a model reaches on a split.

    Attributes:
      kind: of the head, one of `KINDS`.
      label_names: the position is the class index; empty for regression.
      labels: in the form of `labels.encode`.
      predictions: likewise.
      metrics: by name.
      loss: mean over examples, without class weights or smoothing.
    """

    kind: str
    label_names: tuple[str, ...]
    labels: LabelArray
    predictions: LabelArray
    metrics: Mapping[str, float]
    loss: float

    @property
    def values(self) -> dict[str, float]:
        """Metrics and `loss` by name."""
        return {**self.metrics, "loss": self.loss}

    @functools.cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Ends of the 95 % interval of each metric that has one."""
        return task_metrics.confidence_intervals(self.metrics, self.labels, self.predictions)

    @property
    def per_class(self) -> list[task_metrics.ClassScores]:
        """Scores of each class or label; none for regression."""
        if self.kind == REGRESSION:
            return []
        return task_metrics.per_class(self.labels, self.predictions, self.label_names)

    @property
    def confusion(self) -> npt.NDArray[np.int64] | None:
        """[L, L] labels by predictions; None where an example has not one of several classes."""
        if self.kind != CLASSIFICATION:
            return None
        return task_metrics.confusion(self.labels, self.predictions, len(self.label_names))

    @property
    def collapsed(self) -> str | None:
        """Why the predictions look as if nothing was learned; None where they do not."""
        return task_metrics.collapse(self.labels, self.predictions, self.label_names)


def evaluate_logits(
    head: HeadSpec, label_names: Sequence[str], metrics: Iterable[str], logits: scores.Logits, label_ids: LabelArray
) -> Evaluation:
    """Measures logits by labels; each example counts once.

    Args:
      head: of the task.
      label_names: of the task.
      metrics: keys of `bert_tf.metrics.METRICS`.
      logits: [E, L], of texts in windows the mean over them.
      label_ids: [E] or [E, L], see `labels.encode`.

    Raises:
      ValueError: there is nothing to measure, or labels are not as many.
    """
    predictions = scores.predictions(head.kind, logits)
    values = task_metrics.compute(metrics, label_ids, predictions)
    loss = float(scores.losses(head.kind, logits, label_ids).mean())
    return Evaluation(head.kind, tuple(label_names), label_ids, predictions, values, loss)


def split_suffix(split: str) -> str:
    """Returns what tells the splits of a purpose apart: "_matched" of dev_matched, nothing of dev."""
    purpose, _, rest = split.partition("_")
    if purpose not in PURPOSES:
        return f"_{split}"
    return f"_{rest}" if rest else ""


def summarize(evaluations: Mapping[str, Evaluation]) -> dict[str, float]:
    """Returns metrics and loss as the mean over splits, and those of each split under its suffix: accuracy_matched.

    Args:
      evaluations: by split; all of one task.
    """
    by_split = {split_suffix(split): evaluation.values for split, evaluation in evaluations.items()}
    names = next(iter(by_split.values()))
    means = {name: float(np.mean([values[name] for values in by_split.values()])) for name in names}
    return {**means, **{f"{name}{suffix}": values[name] for suffix, values in by_split.items() for name in names}}
