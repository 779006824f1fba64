"""Extractive question answering as a family of tasks, from files or rows in memory.

Shapes: E questions, N rows (windows).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.extensions.span import SQUAD, SQUAD2, SpanSettings, evaluation
from bert_tf.extensions.span import features as spans
from bert_tf.extensions.span.decoding import Floats, Rules, decode
from bert_tf.extensions.span.predictions import (
    COLUMNS,
    PUBLISHED_FILES,
    Prediction,
    Predictions,
    cells,
    chosen,
    most_confident,
    published_files,
)
from bert_tf.extensions.span.reader import Reader, SpanExample, read_rows
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import SPAN, HeadSpec
from bert_tf.settings import named, settings_of
from bert_tf.tasks.base import DEV, TEST, TRAIN, Family, Limits, Outputs
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.families import refuse_idle_rules
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.names import JSONL
from bert_tf.tasks.predictions import TextLayout
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.settings import TaskSettings, path_names
from bert_tf.tokenization.tokenizer import Tokenizer

_OF_ANSWERS = tuple(field.name for field in dataclasses.fields(SpanSettings) if field.name != "predict_file")
_OF_WINDOWS = ("doc_stride", "max_query_length", "version_2_with_negative")


@dataclasses.dataclass(frozen=True)
class SpanFamily(Family):
    """Extractive question answering; see `SpanSettings` for the attributes."""

    doc_stride: int = SpanSettings.doc_stride
    max_query_length: int = SpanSettings.max_query_length
    n_best_size: int = SpanSettings.n_best_size
    max_answer_length: int = SpanSettings.max_answer_length
    version_2_with_negative: bool = SpanSettings.version_2_with_negative
    null_score_diff_threshold: float = SpanSettings.null_score_diff_threshold

    kind: ClassVar[str] = SPAN
    head: ClassVar[HeadSpec] = HeadSpec(2, SPAN)
    metrics: ClassVar[tuple[str, ...]] = evaluation.METRICS
    targets: ClassVar[tuple[Field, ...]] = spans.FIELDS
    rules: ClassVar[tuple[str, ...]] = ("n_best_size", "max_answer_length", "null_score_diff_threshold")
    trains_on_windows = True
    usual_id_column = "id"
    file_patterns: ClassVar[tuple[str, ...]] = tuple(
        f"{name}*.{suffix}" for name, suffix in (("predictions", "jsonl"), *((name, "json") for name in PUBLISHED_FILES))
    )
    usual_settings: ClassVar[Mapping[str, Any]] = {"max_seq_length": 384}
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 2e-4,
        "train_batch_size": 8,
        "num_train_epochs": 12.0,
        "max_seq_length": 128,
    }

    @classmethod
    def from_settings(cls, settings: SpanSettings) -> SpanFamily:
        return cls(**{name: getattr(settings, name) for name in _OF_ANSWERS})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SpanFamily:
        return cls(**{name: record[name] for name in _OF_ANSWERS if name in record})

    def as_trained(self, record: Mapping[str, Any]) -> SpanFamily:
        """Uses the windows and rules of a trained model; the task decides whether a question may have no answer."""
        recorded = {name: record[name] for name in _OF_ANSWERS if name in record and name != "version_2_with_negative"}
        return dataclasses.replace(self, **recorded)

    @property
    def may_have_no_label(self) -> bool:
        return self.version_2_with_negative

    def no_effect(self, rule: str) -> str:
        is_idle = rule == "null_score_diff_threshold" and not self.version_2_with_negative
        return "is for questions that may have no answer (SQuAD2, --version_2_with_negative)" if is_idle else ""

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[SpanExample]:
        return read_rows(rows, split, labelled=labelled, may_be_none=self.version_2_with_negative)

    def features(self, examples: Sequence[SpanExample], tokenizer: Tokenizer, limits: Limits) -> Features:
        """Always splits long texts into windows."""
        windows = spans.Windows(limits.max_seq_length, self.doc_stride, self.max_query_length)
        return spans.build([_question(example) for example in examples], tokenizer, windows)

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[SpanExample]) -> Predictions:
        logits = outputs["span_logits"]
        threshold = self.null_score_diff_threshold if self.version_2_with_negative else None
        rules = Rules(self.n_best_size, self.max_answer_length)
        decoded = decode(logits, features, [example.context for example in examples], rules)
        each = [chosen(example.guid, answers, threshold) for example, answers in zip(examples, decoded)]
        return Predictions(each, _loss(logits, features), int((features.targets[spans.COUNTED] > 0).sum()))

    def listed(self, predictions: Predictions, examples: Sequence[SpanExample]) -> Sequence[Prediction]:
        del examples
        return predictions.each

    def evaluation(self, predictions: Predictions, examples: Sequence[SpanExample]) -> Evaluation:
        return evaluation.evaluate(examples, predictions, may_be_none=self.version_2_with_negative)

    def mistakes(self, predictions: Predictions, examples: Sequence[SpanExample]) -> list[dict[str, Any]]:
        """An answer is wrong if it matches no reference exactly."""
        exact = evaluation.exact_matches(examples, predictions, may_be_none=self.version_2_with_negative)
        return most_confident(examples, predictions.each, exact)

    def files(
        self, predictions: Predictions, examples: Sequence[SpanExample], *, suffix: str, published_suffix: str
    ) -> dict[str, str]:
        del published_suffix
        lines = self.layout(JSONL).rows(examples, predictions)
        return {
            f"predictions{suffix}.jsonl": lines,
            **published_files(predictions, suffix, may_be_none=self.version_2_with_negative),
        }

    def layout(self, form: str) -> TextLayout:
        return TextLayout(COLUMNS if self.version_2_with_negative else COLUMNS[:-1], cells, form)

    def record(self) -> dict[str, Any]:
        return {**super().record(), **{name: getattr(self, name) for name in _OF_WINDOWS}}


def _question(example: SpanExample) -> spans.Question:
    answer = spans.NO_ANSWER
    if example.is_misplaced:
        answer = spans.UNUSABLE
    elif example.answers:
        text, start = example.answers[0]
        answer = (start, start + len(text))
    return spans.Question(example.question, example.context, answer)


def _loss(logits: Floats, features: Features) -> float:
    """Returns the cross-entropy in nats, averaged over start and end and over the rows that count; 0 if none does."""
    lengths, counted = features.lengths, features.targets[spans.COUNTED] > 0
    if not counted.any():
        return 0.0
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    losses = np.zeros(len(features))
    for end, name in enumerate((spans.START, spans.END)):
        column = logits[:, end].astype(np.float64)
        highest = np.maximum.reduceat(column, starts)
        sums = np.add.reduceat(np.exp(column - np.repeat(highest, lengths)), starts)
        losses += highest + np.log(sums) - column[starts + features.targets[name]]
    return float(losses[counted].mean() / 2)


_VERSIONS = {SQUAD: 1, SQUAD2: 2}


def task(name: str, settings: TaskSettings, labels: object = None) -> FileTask:
    """SQuAD 1.1 (2.0 if the published flag allows questions without an answer), SQuAD 2.0, or custom questions."""
    custom, span = settings.custom, settings.extensions.span
    if name == SQUAD2:
        span = dataclasses.replace(span, version_2_with_negative=True)
    reader = Reader(span.version_2_with_negative, custom.file_format, custom.id_column, settings.needs_ids)
    files = dataclasses.replace(
        custom, dev_file=custom.dev_file or span.predict_file, test_file=custom.test_file or span.predict_file
    )
    if labels is None:  # of no trained model
        refuse_idle_rules(SpanFamily.from_settings(span))
    patterns: Mapping[str, Sequence[str]] = {}
    if name in _VERSIONS:
        by_split = {split: (f"{split}-v{_VERSIONS[name]}*.json", f"{split}-v*.json") for split in (TRAIN, DEV, TEST)}
        # As published, dev is predicted if there is no test file.
        patterns = {**by_split, TEST: (*by_split[TEST], *by_split[DEV])}
    return FileTask(name, functools.partial(SpanFamily.from_settings, span), reader, files, patterns)


class SpanTask(RowsTask):
    """Extractive question answering from rows in memory: questions with texts that contain the answers.

    A row is a mapping, or a row of a pandas data frame, with `question`, `context`, `answer`, and `start`, its first
    character, required if the answer occurs more than once; or a sequence of these. Rows to predict have no answer.

        task = SpanTask(train=[{"question": "Who left?", "context": "Ann left early.", "answer": "Ann"}])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        **settings: Any,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.
          **settings: fields of `SpanSettings`, for example `doc_stride=64` or `version_2_with_negative=True`.

        Raises:
          FlagError: a setting is unknown or has an invalid value.
          DataError: a row has another format; names split and row.
        """
        known = [row for row in settings_of(SpanSettings) if row.name not in path_names()]
        family = SpanFamily.from_settings(SpanSettings(**named(known, settings)))
        refuse_idle_rules(family)
        super().__init__(family, train, dev, test)
