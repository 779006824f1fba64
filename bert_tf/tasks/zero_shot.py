"""Pairs with scores, measured without training by the cosines of vectors.

Shapes: E examples, N rows, D hidden size.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.errors import DataError, FlagError
from bert_tf.features import sentences
from bert_tf.features.columns import Features
from bert_tf.head_spec import REGRESSION
from bert_tf.tasks import tables
from bert_tf.tasks.base import Limits, Outputs, Submission, Task
from bert_tf.tasks.sentence.evaluation import SentenceEvaluation
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.scores import Logits, averaged
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

SUFFIX = "-zero-shot"


@dataclasses.dataclass(frozen=True)
class CosineFamily(SentenceFamily):
    """Pairs whose texts have a vector each. Predictions are [E, 1] cosines."""

    def features(self, examples: Sequence[SentenceExample], tokenizer: WordPieceTokenizer, limits: Limits) -> Features:
        """Returns rows of all texts, the two of an example one after the other.

        Raises:
          DataError: an example has one text.
        """
        single = next((example.guid for example in examples if example.text_b is None), None)
        if single is not None:
            raise DataError("one text, where pairs are compared", single)
        texts = ((text, None) for example in examples for text in example.texts)
        return sentences.build(texts, None, tokenizer, max_seq_length=limits.max_seq_length, long_text=limits.long_text)

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[SentenceExample]) -> Logits:
        """Returns [E, 1] cosines of the vectors of both texts; that of one in windows is the mean over these."""
        vectors = averaged(outputs["vectors"], features.example_ids).astype(np.float64)  # [2 E, D]
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines: Logits = (units[::2] * units[1::2]).sum(axis=1, keepdims=True)
        return cosines[: len(examples)]

    def evaluation(self, predictions: Logits, examples: Sequence[SentenceExample]) -> SentenceEvaluation:
        """Measures cosines by scores; for the loss a cosine of 1 is the highest score of the examples."""
        highest = max(float(example.label) for example in examples)  # type: ignore[arg-type]
        return super().evaluation(predictions * highest, examples)

    def record(self) -> dict[str, Any]:
        """Returns what tells it from a family that is trained."""
        return {**super().record(), "zero_shot": True}


@dataclasses.dataclass(frozen=True)
class ZeroShotTask:
    """A task of pairs with scores, for a model that has not learned it."""

    of: Task

    @property
    def name(self) -> str:
        """Tells its results from those of trained models."""
        return f"{self.of.name}{SUFFIX}"

    @property
    def family(self) -> CosineFamily:
        """Pairs with vectors."""
        return CosineFamily((), REGRESSION, self.of.family.metrics)

    @property
    def reads_folder(self) -> bool:
        """See `Task`."""
        return self.of.reads_folder

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        """See `Task`."""
        return self.of.splits(data_dir, purpose)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """See `Task`."""
        return self.of.file(data_dir, split)

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Sequence[SentenceExample]:
        """See `Task`."""
        return self.of.examples(data_dir, split)

    def stream(self, source: tables.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[SentenceExample]:
        """See `Task`."""
        return self.of.stream(source, split, report)

    def published_name(self, split: str) -> str:
        """See `Task`."""
        return self.of.published_name(split)

    def submission(self, split: str) -> Submission | None:
        """No server takes cosines."""
        del split
        return None


def zero_shot(task: Task) -> ZeroShotTask:
    """Returns a task of pairs with scores for models that have not learned it.

    Raises:
      FlagError: the task has no such pairs.
    """
    if task.family.kind != REGRESSION:
        raise FlagError(f"--zero_shot compares cosines with scores; {task.name} has none (STS-B has)")
    return ZeroShotTask(task)
