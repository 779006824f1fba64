"""Scores pairs by the cosine of their vectors, without training."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bert_tf.errors import FlagError
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import Submission, Task
from bert_tf.tasks.glue import GlueTask
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.similarity.family import SimilarityFamily

SUFFIX = "-zero-shot"


@dataclasses.dataclass(frozen=True)
class ZeroShotTask:
    """A task of pairs with scores, for a model not trained on it."""

    of: Task
    highest_score: float  # score at cosine 1, for the loss

    @property
    def name(self) -> str:
        """Separates its results from those of trained models."""
        return f"{self.of.name}{SUFFIX}"

    @property
    def family(self) -> SimilarityFamily:
        return SimilarityFamily(self.highest_score)

    @property
    def reads_folder(self) -> bool:
        return self.of.reads_folder

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        return self.of.splits(data_dir, purpose)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        return self.of.file(data_dir, split)

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Sequence[SentenceExample]:
        return self.of.examples(data_dir, split)

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        return self.of.stream(source, split, report)

    def published_name(self, split: str) -> str:
        return self.of.published_name(split)

    def submission(self, split: str) -> Submission | None:
        """None: no server accepts cosines."""
        del split
        return None


def zero_shot(task: Task) -> ZeroShotTask:
    """Wraps a task for models not trained on it; raises `FlagError` if it has no pairs with scores."""
    if task.family.kind != REGRESSION:
        raise FlagError(f"--zero_shot compares cosines with scores; {task.name} has none (STS-B has)")
    bounds = task.bounds if isinstance(task, GlueTask) else None
    return ZeroShotTask(task, bounds[1] if bounds else 1.0)
