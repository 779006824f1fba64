"""Text pairs as families and tasks that learn sentence embeddings. Shapes: E examples, N rows, D hidden size."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.errors import DataError
from bert_tf.extensions.similarity import SimilaritySettings
from bert_tf.extensions.similarity import predictions as pairs_of
from bert_tf.extensions.similarity.predictions import COLUMNS, SCORED, UNSCORED, Prediction, Vectors, listed, of_label
from bert_tf.features.columns import Features
from bert_tf.features.long_text import TRUNCATE
from bert_tf.features.sentences import build
from bert_tf.fields import Field
from bert_tf.head_spec import CONTRASTIVE, REGRESSION, SIMILARITY, HeadSpec
from bert_tf.settings import named, settings_of
from bert_tf.tasks import glue, tables, text_lines
from bert_tf.tasks.base import DEV, TEST, Family, Limits, Outputs, Task
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.glue import SIMILARITIES, GlueTask
from bert_tf.tasks.predictions import TextLayout
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.sentence.rows import USUAL, RowColumns, SentenceExample, read_rows
from bert_tf.tasks.sentence.task import CustomTask, LabelColumn
from bert_tf.tasks.settings import CUSTOM, TaskSettings
from bert_tf.tokenization.tokenizer import Tokenizer

SIDES = Field("sides")  # 0 in rows of the first text of a pair, 1 in those of the second
SCORES = Field("scores", dtype=np.float32)
PAIR_FIELDS = (SIDES, SCORES)
_TEXTS = Field("texts")  # numbers of texts


def build_pairs(
    pairs: Iterable[tuple[str, str]],
    scores: Sequence[float],
    tokenizer: Tokenizer,
    *,
    max_seq_length: int,
    long_text: str = TRUNCATE,
) -> Features:
    """Converts E pairs to features, in order, first texts before second ones; `scores` are target cosines.

    `max_seq_length` includes special tokens; `long_text` is a key of `long_text.CUTS`.
    """
    texts = [(text, None) for pair in pairs for text in pair]
    numbers = np.arange(len(texts), dtype=np.int32)
    cut = build(texts, (_TEXTS, numbers), tokenizer, max_seq_length=max_seq_length, long_text=long_text)
    text_of = cut.targets[_TEXTS.name]  # [N]
    targets = {SIDES.name: text_of % 2, SCORES.name: np.array(scores, np.float32)[text_of // 2]}
    return dataclasses.replace(cut, targets=targets, fields=PAIR_FIELDS, example_ids=text_of // 2, together=True)


BELONG = True  # label of a pair without a score


@dataclasses.dataclass(frozen=True)
class SimilarityFamily(Family):
    """Pairs with scores, learned by the cosine. Predictions are [E, 2, D] vectors of both texts."""

    highest_score: float = 1.0  # score at cosine 1; the lowest is 0
    columns: RowColumns = USUAL  # of rows in memory

    kind: ClassVar[str] = SIMILARITY
    targets: ClassVar[tuple[Field, ...]] = PAIR_FIELDS
    file_patterns: ClassVar[tuple[str, ...]] = ("predictions*.tsv",)
    trains_together = True
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 2e-4,
        "train_batch_size": 16,
        "num_train_epochs": 8.0,
        "max_seq_length": 64,
    }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SimilarityFamily:
        return cls(record["highest_score"], RowColumns.from_settings(record))

    def as_trained(self, record: Mapping[str, Any]) -> SimilarityFamily:
        """Uses the scores of a trained similarity model; unchanged for other models."""
        return dataclasses.replace(self, highest_score=record.get("highest_score", self.highest_score))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Correlations of cosines and scores."""
        return SCORED

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(1, self.kind)

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[SentenceExample]:
        """Every row must have two texts and a score within bounds."""
        examples = read_rows(rows, split, kind=REGRESSION if labelled else None, columns=self.columns)
        for number, example in enumerate(examples):
            if example.text_b is None:
                raise DataError(f"row {number}: one text, but pairs are compared; give two", split)
            if labelled and not 0.0 <= of_label(example) <= self.highest_score:
                raise DataError(f"row {number}: the label {example.label:g} is outside 0 to {self.highest_score:g}", split)
        return examples

    def features(self, examples: Sequence[SentenceExample], tokenizer: Tokenizer, limits: Limits) -> Features:
        return build_pairs(
            [(example.text_a, example.text_b or "") for example in examples],
            [of_label(example) / self.highest_score for example in examples],
            tokenizer,
            max_seq_length=limits.max_seq_length,
            long_text=limits.long_text,
        )

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[SentenceExample]) -> Vectors:
        """Returns [E, 2, D] vectors, averaged over the windows of a text."""
        if not examples:
            return np.zeros([0, 2, 0], np.float32)
        first_rows = np.flatnonzero(np.diff(features.targets[SIDES.name], prepend=1))  # texts take turns
        rows = np.diff(first_rows, append=len(features))  # of each text
        sums = np.add.reduceat(outputs["vectors"].astype(np.float64), first_rows)  # [2 E, D]
        means: Vectors = (sums / rows[:, None]).astype(np.float32).reshape(len(examples), 2, -1)
        return means

    def listed(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> list[Prediction]:
        return listed(predictions, examples, self.highest_score)

    def evaluation(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> Evaluation:
        return pairs_of.evaluate_scores(predictions, examples, self.highest_score)

    def mistakes(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> list[dict[str, Any]]:
        return pairs_of.largest_errors(predictions, examples, self.highest_score)

    def layout(self, form: str) -> TextLayout:
        return TextLayout(COLUMNS, lambda examples, vectors: map(dataclasses.astuple, self.listed(vectors, examples)), form)

    def record(self) -> dict[str, Any]:
        return {**super().record(), "highest_score": self.highest_score}


@dataclasses.dataclass(frozen=True)
class ZeroShotFamily(SimilarityFamily):
    """Pairs whose scores have a scale of their own, for models that were not trained on them."""

    rules: ClassVar[tuple[str, ...]] = ("highest_score",)

    def as_trained(self, record: Mapping[str, Any]) -> ZeroShotFamily:
        del record  # its scale is that of other pairs
        return self

    def features(self, examples: Sequence[SentenceExample], tokenizer: Tokenizer, limits: Limits) -> Features:
        for example in examples:
            if example.text_b is None:
                raise DataError("one text, but pairs are compared: name the second with --text_b", example.guid)
            if of_label(example) < 0.0:
                why = f"the score {of_label(example):g} is below 0"
                raise DataError(f"{why}; shift all scores, so that 0 is the lowest", example.guid)
            if of_label(example) > self.highest_score:
                why = f"the score {of_label(example):g} is above {self.highest_score:g}"
                raise DataError(f"{why}; name the highest of the scale with --highest_score, as 5", example.guid)
        return super().features(examples, tokenizer, limits)


@dataclasses.dataclass(frozen=True)
class ContrastiveFamily(SimilarityFamily):
    """Matching pairs: a text must be closer to its match than to other texts. Scores serve only for evaluation."""

    temperature: float = 0.05  # divisor of cosines in the loss
    scored: bool = False  # evaluation pairs have scores; else the label `BELONG`

    kind: ClassVar[str] = CONTRASTIVE
    rules: ClassVar[tuple[str, ...]] = ("highest_score",)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ContrastiveFamily:
        return cls(record.get("highest_score", cls.highest_score), RowColumns.from_settings(record), record["temperature"])

    def as_trained(self, record: Mapping[str, Any]) -> ContrastiveFamily:
        """Uses the temperature of a trained contrastive model; unchanged for other models."""
        return dataclasses.replace(self, temperature=record.get("temperature", self.temperature))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Correlations with scores; without scores, the rank of the second text among all."""
        return SCORED if self.scored else UNSCORED

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(1, self.kind, (("temperature", self.temperature),))

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[SentenceExample]:
        examples = super().from_rows(rows, split, labelled=False)
        return [dataclasses.replace(example, label=BELONG) for example in examples] if labelled else examples

    def evaluation(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> Evaluation:
        if examples[0].label is not BELONG:
            return super().evaluation(predictions, examples)
        return pairs_of.evaluate_ranks(predictions, examples, temperature=self.temperature)

    def mistakes(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> list[dict[str, Any]]:
        if examples[0].label is not BELONG:
            return super().mistakes(predictions, examples)
        return pairs_of.worst_ranks(predictions, examples)

    def record(self) -> dict[str, Any]:
        return {**Family.record(self), "temperature": self.temperature}


@dataclasses.dataclass(frozen=True)
class StsFamily(SimilarityFamily):
    """Pairs with the scores of STS-B, also for a model that learned those of another scale."""

    highest_score: float = SIMILARITIES[1]
    learned_score: float = SIMILARITIES[1]  # highest score that the model learned, which its record has

    def as_trained(self, record: Mapping[str, Any]) -> StsFamily:
        return dataclasses.replace(self, learned_score=record.get("highest_score", self.learned_score))

    def record(self) -> dict[str, Any]:
        return {**super().record(), "highest_score": self.learned_score}


class StsTask(GlueTask):
    """STS-B files for sentence embeddings."""

    @property
    def family(self) -> SimilarityFamily:  # type: ignore[override]
        return StsFamily()


def task(name: str, settings: TaskSettings, labels: object = None) -> Task:
    """STS-B (Cer et al., 2017) for sentence embeddings, or custom pairs."""
    del labels
    if name == CUSTOM:
        return (PairsTask if settings.custom.problem == SIMILARITY else MatchingPairsTask)(settings)
    # The server accepts only predictions of STS-B.
    changes = {"name": name, "metrics": (), "submissions": {}, "skip_bad_rows": settings.custom.skip_bad_rows}
    return StsTask(**{**vars(glue.TASKS["STS-B"]), **changes})


class PairsTask(CustomTask):
    """Custom pairs with scores."""

    def __init__(self, settings: TaskSettings) -> None:
        super().__init__(dataclasses.replace(settings.custom, problem=REGRESSION), needs_ids=settings.needs_ids)
        self._pairs = settings.extensions.similarity
        bounds = (0.0, self._pairs.highest_score)
        self._label_column = LabelColumn(settings.custom.label_column, REGRESSION, settings.custom.label_separator, bounds)

    @functools.cached_property
    def family(self) -> SimilarityFamily:
        return SimilarityFamily(self._pairs.highest_score, self.row_columns)

    def _texts(self, table: tables.Table) -> list[list[str]]:
        texts = super()._texts(table)
        if len(texts) < 2:
            raise DataError("one text, but pairs are compared: name the second with --text_b", table.path)
        return texts


class MatchingPairsTask(PairsTask):
    """Custom matching pairs; dev pairs may have scores."""

    @functools.cached_property
    def family(self) -> ContrastiveFamily:
        """Reads the header of the dev file, if any, to find out whether it has scores; raises `DataError`."""
        dev = self._files[DEV]
        scored = bool(dev) and self._is_labelled(self._table(dev or ""), DEV)
        return ContrastiveFamily(self._pairs.highest_score, self.row_columns, self._pairs.temperature, scored)

    def _is_labelled(self, table: tables.Table, split: str) -> bool:
        return split == DEV and table.has(self._settings.label_column)

    def _numbered(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[tuple[int, SentenceExample]]:
        for line, example in super()._numbered(source, split, report):
            is_scored = split == TEST or example.label is not None
            yield line, example if is_scored else dataclasses.replace(example, label=BELONG)


class SimilarityTask(RowsTask):
    """Sentence embeddings from pairs with similarity scores in memory: (text, second text, score).

    task = SimilarityTask(train=[("He left.", "He went away.", 4.8)], highest_score=5)
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        highest_score: float = 1.0,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without scores.
          highest_score: score of pairs with the same meaning; the lowest score is 0.

        Raises:
          FlagError: the highest score is invalid.
          DataError: a row has another format; names split and row.
        """
        settings = named(settings_of(SimilaritySettings), {"highest_score": highest_score})
        super().__init__(SimilarityFamily(**settings), train, dev, test)


class ContrastiveTask(RowsTask):
    """Sentence embeddings from matching pairs in memory, contrasted with all other texts: (text, second text).

    task = ContrastiveTask(train=[("Who wrote it?", "Ann did.")])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        temperature: float = 0.05,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict.
          temperature: divisor of cosines in the loss.

        Raises:
          FlagError: the temperature is invalid.
          DataError: a row has another format; names split and row.
        """
        settings = named(settings_of(SimilaritySettings), {"temperature": temperature})
        super().__init__(ContrastiveFamily(**settings), train, dev, test)
