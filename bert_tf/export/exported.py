"""Everything that a format may read from a trained model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError
from bert_tf.export.formats import ExportOptions
from bert_tf.tasks.base import Family, Task

FLOAT32 = "float32"

Labelled = Mapping[str, Sequence[Any]]  # examples by the name of their split or file


@dataclasses.dataclass(frozen=True)
class Exported:
    """A trained model and how to export it."""

    trained: Trained
    task: Task
    step: int  # of the checkpoint; 0 if it has none
    options: ExportOptions
    labelled: Callable[[], Labelled] = dict  # reads examples for the precision gate and long texts

    @property
    def family(self) -> Family:
        return self.task.family

    @property
    def reads_pairs(self) -> bool:
        """The option if set, else as in training; raises FlagError if neither is known."""
        if self.options.pairs is not None:
            return self.options.pairs
        texts: int | None = getattr(self.family.as_trained(self.trained.record), "texts", None)
        if texts is None:
            raise FlagError(f"{self.trained.prefix}: nothing says whether its texts come in pairs; give --pairs or --nopairs")
        return texts == 2
