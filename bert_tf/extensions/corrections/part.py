"""A run whose training rows are corrected; the digests of the files are in its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.extensions.corrections import rows
from bert_tf.io import files
from bert_tf.settings import changed
from bert_tf.tasks.base import Example, Task
from bert_tf.training.part import Part
from bert_tf.training.run import Run


class Corrections(Part):
    def read(self, examples: Sequence[Example], task: Task) -> Sequence[Example]:
        return rows.apply(examples, task, exclude=self.settings.exclude_rows, relabel=self.settings.relabel)

    def recorded(self, run: Run) -> Mapping[str, Any]:
        del run
        return {f"{name}_sha256": files.digest(path) for name, path in changed(self.settings).items()}

    def repeated(self, run: Run) -> Mapping[str, Any]:
        del run
        return {name: str(Path(path).resolve()) for name, path in changed(self.settings).items()}
