"""All that a format may see of a trained model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError
from bert_tf.tasks.base import Family, Task

FLOAT32 = "float32"

Labelled = Mapping[str, Sequence[Any]]  # examples by the name of their split or file


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """How to export.

    Attributes:
      precision: of what is written; one of the format's.
      gate_data: folder or file of labelled examples to measure by; None for the task's own dev split.
      max_loss_of_metric: points of a metric that reduced precision may cost.
      pairs: whether sentences come in pairs; None for as the task says.
    """

    precision: str = FLOAT32
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
      labelled: reads the examples that reduced precision and long texts are measured by.
    """

    trained: Trained
    task: Task
    step: int
    options: ExportOptions
    labelled: Callable[[], Labelled] = dict

    @property
    def family(self) -> Family:
        """What was learned."""
        return self.task.family

    @property
    def reads_pairs(self) -> bool:
        """Whether sentences are pairs: as is said, else as in the training.

        Raises:
          FlagError: nothing says it.
        """
        if self.options.pairs is not None:
            return self.options.pairs
        texts: int | None = getattr(self.family.as_trained(self.trained.record), "texts", None)
        if texts is None:
            raise FlagError(f"{self.trained.prefix}: nothing says whether its texts come in pairs; give --pairs or --nopairs")
        return texts == 2
