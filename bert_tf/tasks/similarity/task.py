"""STS-B for sentence embeddings, and custom pairs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, cast

from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks import glue, tables, text_lines
from bert_tf.tasks.base import DEV, TEST, Task
from bert_tf.tasks.glue import SIMILARITIES, GlueTask
from bert_tf.tasks.label_column import LabelColumn
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.task import CustomTask
from bert_tf.tasks.settings import TaskSettings
from bert_tf.tasks.similarity.family import BELONG, ContrastiveFamily, SimilarityFamily

STS_B = "STS-B-vectors"


class StsTask(GlueTask):
    """STS-B files for sentence embeddings."""

    @property
    def family(self) -> SimilarityFamily:  # type: ignore[override]
        return SimilarityFamily(SIMILARITIES[1])


def sts_b() -> StsTask:
    """STS-B (Cer et al., 2017) for sentence embeddings."""
    row = glue.TASKS["STS-B"]
    fields = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    return StsTask(**{**fields, "name": STS_B, "metrics": (), "submissions": {}})  # the server takes those of STS-B alone


class PairsTask(CustomTask):
    """Custom pairs with scores."""

    def __init__(self, settings: TaskSettings) -> None:
        super().__init__(dataclasses.replace(settings.custom, problem=REGRESSION))
        self._pairs = settings.similarity
        bounds = (0.0, self._pairs.highest_score)
        self._label_column = LabelColumn(settings.custom.label_column, REGRESSION, settings.custom.label_separator, bounds)

    @functools.cached_property
    def family(self) -> SimilarityFamily:
        return SimilarityFamily(self._pairs.highest_score)

    def _texts(self, table: tables.Table) -> list[list[str]]:
        texts = super()._texts(table)
        if len(texts) < 2:
            raise DataError("one text, where pairs are compared: name the second with --text_b", table.path)
        return texts


class ContrastiveTask(PairsTask):
    """Custom matching pairs; dev pairs may have scores."""

    @functools.cached_property
    def family(self) -> ContrastiveFamily:
        """Reads the header of the dev file, if any, to find out whether it has scores; raises `DataError`."""
        dev = self._files[DEV]
        scored = bool(dev) and self._is_labelled(self._table(dev or ""), DEV)
        return ContrastiveFamily(self._pairs.highest_score, self._pairs.temperature, scored)

    def _is_labelled(self, table: tables.Table, split: str) -> bool:
        return split == DEV and table.has(self._settings.label_column)

    def _numbered(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[tuple[int, SentenceExample]]:
        for line, example in super()._numbered(source, split, report):
            is_scored = split == TEST or example.label is not None
            yield line, example if is_scored else dataclasses.replace(example, label=BELONG)


SUFFIX = "-zero-shot"


class ZeroShotTask:
    """A task of pairs with scores, for a model not trained on it; its name separates results from those of trained models."""

    def __init__(self, task: Task, highest_score: float) -> None:
        """`highest_score` is the score at cosine 1, for the loss."""
        self._task, self.name, self.family = task, f"{task.name}{SUFFIX}", SimilarityFamily(highest_score)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is unpickled
            raise AttributeError(name)
        return getattr(self._task, name)

    def submission(self, split: str) -> None:
        """None: no server accepts cosines."""


def zero_shot(task: Task) -> Task:
    """Wraps a task for models not trained on it; raises `FlagError` if it has no pairs with scores."""
    if task.family.kind != REGRESSION:
        raise FlagError(f"--zero_shot compares cosines with scores; {task.name} has none (STS-B has)")
    bounds = task.bounds if isinstance(task, GlueTask) else None
    return cast(Task, ZeroShotTask(task, bounds[1] if bounds else 1.0))
