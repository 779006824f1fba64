"""All that a format may see of a trained model."""

from __future__ import annotations

import dataclasses

from bert_tf.batch.trained import Trained
from bert_tf.tasks.base import Family, Task


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """How to export.

    Attributes:
      gate_data: folder or file of labelled examples that reduced precision is measured by; None for the task's own dev split.
      max_loss_of_metric: points of the first metric that reduced precision may cost.
      pairs: whether sentences come in pairs; None for as the task says.
    """

    gate_data: str | None = None
    max_loss_of_metric: float = 0.5
    pairs: bool | None = None


@dataclasses.dataclass(frozen=True)
class Exported:
    """A trained model, and how to export it.

    Attributes:
      trained: weights, and what belongs to them.
      task: what was learned.
      step: of the checkpoint; 0 where it has none.
      options: how.
    """

    trained: Trained
    task: Task
    step: int
    options: ExportOptions

    @property
    def family(self) -> Family:
        """What was learned."""
        return self.task.family

    @property
    def reads_pairs(self) -> bool:
        """Whether examples are pairs of texts: as is said, else as the task or the columns of the training say."""
        if self.options.pairs is not None:
            return self.options.pairs
        return (getattr(self.task, "text_b", None) or self.trained.record.get("text_b")) is not None
