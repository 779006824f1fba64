"""A task of some rows of another: its splits are parts of splits of that, and share their features."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.features.columns import Numbers
from bert_tf.inputs import cache
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import Family, Splits, Task
from bert_tf.training.sources import DataSource


@dataclasses.dataclass(frozen=True)
class Whole:
    """A split that is divided; its features are built once and shared by the parts."""

    split: str
    examples: Sequence[Any]
    features_dir: Path

    @functools.cached_property
    def digest(self) -> str:
        return cache.examples_digest(self.examples)


class PartOfSplit(Sequence[Any]):
    """Some examples of a split, in its order."""

    def __init__(self, whole: Whole, numbers: Numbers) -> None:
        self.whole, self.numbers = whole, np.sort(numbers)
        self._examples = [whole.examples[number] for number in self.numbers]

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: Any) -> Any:
        return self._examples[index]


@dataclasses.dataclass(frozen=True)
class PartialTask(Splits):
    inner: Task
    data: DataSource  # of the inner task
    parts: Mapping[str, PartOfSplit]  # by purpose

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def family(self) -> Family:
        return self.inner.family

    def splits(self, data_dir: object, purpose: str) -> tuple[str, ...]:
        del data_dir
        return (purpose,)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        return self.inner.file(data_dir, split)

    def examples(self, data_dir: object, split: str) -> PartOfSplit:
        del data_dir
        return self.parts[split]

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        return self.inner.stream(source, split, report)
