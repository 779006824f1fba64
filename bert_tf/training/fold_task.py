"""A fold of a training split, as a task: the other rows are its training split, its own rows are evaluated."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.errors import DataError
from bert_tf.features.columns import Numbers
from bert_tf.inputs import cache
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import Family, Splits, Task
from bert_tf.training.sources import DataSource

_TITLE = "title"


@dataclasses.dataclass(frozen=True)
class Whole:
    """A training split that is divided into folds; its features are built once and shared by them."""

    split: str
    examples: Sequence[Any]
    features_dir: Path

    @functools.cached_property
    def digest(self) -> str:
        return cache.examples_digest(self.examples)


class Part(Sequence[Any]):
    """Some examples of a split, in its order."""

    def __init__(self, whole: Whole, numbers: Numbers) -> None:
        self.whole, self.numbers = whole, np.sort(numbers)
        self._examples = [whole.examples[number] for number in self.numbers]

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, place: Any) -> Any:
        return self._examples[place]


@dataclasses.dataclass(frozen=True)
class FoldTask(Splits):
    inner: Task
    data: DataSource  # of the inner task
    parts: Mapping[str, Part]  # by purpose

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

    def examples(self, data_dir: object, split: str) -> Part:
        del data_dir
        return self.parts[split]

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        return self.inner.stream(source, split, report)


def groups_of(task: Task, path: Path, split: str, column: str) -> list[Any]:
    """Returns the value of a column for each usable row of a table, or the `title` of each question's article."""
    source = text_lines.Kept(path)
    found: list[Any] = []
    place = None
    for example in task.stream(source, split, lambda _: None):
        columns = source.columns
        if place is None and columns is None:
            if column != _TITLE or not hasattr(example, column):
                raise DataError(f"--group_column={column}: the file is not a table with columns", path)
        elif place is None and columns is not None:
            if column not in columns:
                raise DataError(f"--group_column={column}: no such column; there are {', '.join(columns):.200}", path)
            place = columns.index(column)
        found.append(getattr(example, column) if place is None else source.row[place])
    return found
