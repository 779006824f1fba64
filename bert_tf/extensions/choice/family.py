"""Multiple choice as a family of tasks, from files or rows in memory. Shapes: E examples, N rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.extensions.choice import SWAG
from bert_tf.extensions.choice import features as choices
from bert_tf.extensions.choice.features import FIELDS, NO_ANSWER, OPTION_IDS, Choice
from bert_tf.extensions.choice.predictions import (
    COLUMNS,
    Logits,
    Prediction,
    cells,
    evaluate,
    labelled_logits,
    listed,
    most_confident_mistakes,
)
from bert_tf.extensions.choice.reader import ChoiceExample, read_choices, read_rows
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import CHOICE, HeadSpec
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks.base import DEV, TEST, TRAIN, Family, Limits, Outputs
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.names import FORMATS
from bert_tf.tasks.predictions import TextLayout
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.settings import TaskSettings
from bert_tf.tokenization.tokenizer import Tokenizer

_PATTERNS = {TRAIN: ("train.csv",), DEV: ("val.csv", "dev.csv"), TEST: ("test.csv",)}


@dataclasses.dataclass(frozen=True)
class ChoiceFamily(Family):
    """Predictions are the logits of each question's options, averaged over the windows of a long text."""

    decision: Decision = PUBLISHED

    kind: ClassVar[str] = CHOICE
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    targets: ClassVar[tuple[Field, ...]] = FIELDS
    file_patterns: ClassVar[tuple[str, ...]] = tuple(f"predictions*.{form}" for form in FORMATS)
    trains_together = True
    # As published for SWAG (Devlin et al., 2018).
    usual_settings: ClassVar[Mapping[str, Any]] = {"learning_rate": 2e-5, "train_batch_size": 16}
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 8e-5,
        "train_batch_size": 8,
        "num_train_epochs": 6.0,
        "max_seq_length": 64,
    }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ChoiceFamily:
        return cls(Decision.from_record(record))

    def as_trained(self, record: Mapping[str, Any]) -> ChoiceFamily:
        return self.from_record(record)

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(1, CHOICE, self.decision.head_options)

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[ChoiceExample]:
        return read_rows(rows, split, labelled=labelled)

    def features(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, limits: Limits) -> Features:
        asked = [Choice(example.context, *example.around, example.options) for example in examples]
        answers = [NO_ANSWER if example.label is None else example.label for example in examples]
        return choices.build(asked, answers, tokenizer, max_seq_length=limits.max_seq_length, long_text=limits.long_text)

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[ChoiceExample]) -> list[Logits]:
        if not examples:
            return []
        first_rows = np.flatnonzero(np.diff(features.targets[OPTION_IDS.name], prepend=-1))
        rows = np.diff(first_rows, append=len(features))
        logits = np.add.reduceat(outputs["logits"].astype(np.float64), first_rows) / rows
        ends = np.cumsum([len(example.options) for example in examples])
        return np.split(logits, ends[:-1])

    def listed(self, predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[Prediction]:
        return listed(predictions, examples)

    def evaluation(self, predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> Evaluation:
        return evaluate(predictions, examples)

    def mistakes(self, predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[dict[str, Any]]:
        return most_confident_mistakes(predictions, examples)

    def labelled_logits(self, predictions: Sequence[Logits], examples: Sequence[ChoiceExample]) -> list[LabelledLogits]:
        return [labelled_logits(predictions, examples)]

    def layout(self, form: str) -> TextLayout:
        return TextLayout(COLUMNS, cells, form)


def task(name: str, settings: TaskSettings, labels: object = None) -> FileTask:
    """SWAG (Zellers et al., 2018) in its published columns, or custom questions."""
    del labels
    read = functools.partial(read_choices, settings)
    return FileTask(name, ChoiceFamily, read, settings.custom, _PATTERNS if name == SWAG else {})


class ChoiceTask(RowsTask):
    """Multiple choice from rows in memory: questions with options, one of them right.

    A row is a mapping with `context` or `passage`, `question`, `options`, and `answer`: its index from 0, letter or
    text.

        task = ChoiceTask(train=[{"context": "It rains.", "question": "", "options": ["We stay in.", "We swim."], "answer": 0}])
    """

    def __init__(
        self, train: Iterable[Any] | None = None, dev: Iterable[Any] | None = None, test: Iterable[Any] | None = None
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.

        Raises:
          DataError: a row has another format; names split and row.
        """
        super().__init__(ChoiceFamily(), train, dev, test)
