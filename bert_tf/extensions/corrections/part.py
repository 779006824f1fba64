"""A run whose training rows are corrected; the digests of the files are in its record."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.extensions.corrections import rows
from bert_tf.io import files
from bert_tf.settings import changed
from bert_tf.tasks.base import TRAIN, Example, Family
from bert_tf.training.part import Part
from bert_tf.training.run import Run


class Corrections(Part):
    def read(self, examples: Sequence[Example], family: Family) -> Sequence[Example]:
        return rows.apply(examples, family, exclude=self.settings.exclude_rows, relabel=self.settings.relabel)

    def check(self, run: Run) -> Iterator[str]:
        """A number on the scale of the task, which its family need not know."""
        bounds = getattr(run.task, "bounds", None)
        if bounds is None:
            return
        examples = itertools.chain.from_iterable(run.examples[split] for split in run.splits.get(TRAIN, ()))
        wrong = next((example for example in examples if not bounds[0] <= example.label <= bounds[1]), None)
        if wrong is not None:
            path = self.settings.relabel
            yield f"{path}: {wrong.guid}: the label {wrong.label:g} is outside {bounds[0]:g} to {bounds[1]:g}"

    def recorded(self, run: Run) -> Mapping[str, Any]:
        del run
        return {f"{name}_sha256": files.digest(path) for name, path in changed(self.settings).items()}

    def repeated(self, run: Run) -> Mapping[str, Any]:
        del run
        return {name: str(Path(path).resolve()) for name, path in changed(self.settings).items()}
