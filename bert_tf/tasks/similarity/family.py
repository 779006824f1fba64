"""Text pairs as families of tasks that learn sentence embeddings. Shapes: E examples, N rows, D hidden size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.errors import DataError
from bert_tf.features import pairs
from bert_tf.features.columns import Features
from bert_tf.features.pairs import FIELDS, SIDES
from bert_tf.fields import Field
from bert_tf.head_spec import CONTRASTIVE, REGRESSION, SIMILARITY, HeadSpec
from bert_tf.tasks.base import Family, Limits, Outputs
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.predictions import TextLayout
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.rows import read_rows
from bert_tf.tasks.similarity import evaluation
from bert_tf.tasks.similarity.predictions import COLUMNS, Prediction, Vectors, listed
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

SCORED = ("spearman", "pearson")
UNSCORED = ("mrr", "accuracy_at_1")
BELONG = True  # label of a pair without a score


@dataclasses.dataclass(frozen=True)
class SimilarityFamily(Family):
    """Pairs with scores, learned by the cosine. Predictions are [E, 2, D] vectors of both texts."""

    highest_score: float = 1.0  # score at cosine 1; the lowest is 0

    kind: ClassVar[str] = SIMILARITY
    targets: ClassVar[tuple[Field, ...]] = FIELDS
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
        return cls(record["highest_score"])

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
        examples = read_rows(rows, split, kind=REGRESSION if labelled else None)
        for number, example in enumerate(examples):
            if example.text_b is None:
                raise DataError(f"row {number}: one text, where pairs are compared; give two", split)
            if labelled and not 0.0 <= evaluation.of_label(example) <= self.highest_score:
                raise DataError(f"row {number}: the label {example.label:g} is outside 0 to {self.highest_score:g}", split)
        return examples

    def features(self, examples: Sequence[SentenceExample], tokenizer: WordPieceTokenizer, limits: Limits) -> Features:
        return pairs.build(
            [(example.text_a, example.text_b or "") for example in examples],
            [evaluation.of_label(example) / self.highest_score for example in examples],
            tokenizer,
            max_seq_length=limits.max_seq_length,
            long_text=limits.long_text,
        )

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[SentenceExample]) -> Vectors:
        """Returns [E, 2, D] vectors, averaged over the windows of a text."""
        if not examples:
            return np.zeros([0, 2, 0], np.float32)
        begins = np.diff(features.targets[SIDES.name], prepend=1) != 0  # texts take turns
        first_rows = np.flatnonzero(begins)
        rows = np.diff(first_rows, append=len(features))  # of each text
        sums = np.add.reduceat(outputs["vectors"].astype(np.float64), first_rows)  # [2 E, D]
        means: Vectors = (sums / rows[:, None]).astype(np.float32).reshape(len(examples), 2, -1)
        return means

    def listed(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> list[Prediction]:
        return listed(predictions, examples, self.highest_score)

    def evaluation(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> Evaluation:
        return evaluation.evaluate_scores(predictions, examples, self.highest_score)

    def mistakes(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> list[dict[str, Any]]:
        return evaluation.largest_errors(predictions, examples, self.highest_score)

    def layout(self, form: str) -> TextLayout:
        return TextLayout(COLUMNS, lambda examples, vectors: map(dataclasses.astuple, self.listed(vectors, examples)), form)

    def record(self) -> dict[str, Any]:
        return {**super().record(), "highest_score": self.highest_score}


@dataclasses.dataclass(frozen=True)
class ContrastiveFamily(SimilarityFamily):
    """Matching pairs: a text must be closer to its match than to other texts. Scores serve only for evaluation."""

    temperature: float = 0.05  # divisor of cosines in the loss
    scored: bool = False  # evaluation pairs have scores; else the label `BELONG`

    kind: ClassVar[str] = CONTRASTIVE
    rules: ClassVar[tuple[str, ...]] = ("highest_score",)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ContrastiveFamily:
        return cls(record.get("highest_score", cls.highest_score), record["temperature"])

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
        found = super().from_rows(rows, split, labelled=False)
        return [dataclasses.replace(example, label=BELONG) for example in found] if labelled else found

    def evaluation(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> Evaluation:
        if examples[0].label is not BELONG:
            return super().evaluation(predictions, examples)
        return evaluation.evaluate_ranks(predictions, examples, temperature=self.temperature)

    def mistakes(self, predictions: Vectors, examples: Sequence[SentenceExample]) -> list[dict[str, Any]]:
        if examples[0].label is not BELONG:
            return super().mistakes(predictions, examples)
        return evaluation.worst_ranks(predictions, examples)

    def record(self) -> dict[str, Any]:
        return {**Family.record(self), "temperature": self.temperature}
