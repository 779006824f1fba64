"""Sentences as a family: classification, regression or multi-label. Shapes: E examples, N rows, L labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Optional

import numpy as np

from bert_tf import metrics
from bert_tf.errors import DataError
from bert_tf.features import sentences
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks.base import Family, Limits, Outputs
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.names import TSV
from bert_tf.tasks.predictions import Id, Share, TextLayout, hints_of
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.evaluation import evaluate_logits, most_confident
from bert_tf.tasks.sentence.rows import (
    USUAL,
    Label,
    RowColumns,
    SentenceExample,
    read_rows,
    recorded_texts,
    refuse_unknown_labels,
)
from bert_tf.tasks.sentence.scores import FIELD, LabelArray, balanced_weights, encode
from bert_tf.tokenization.tokenizer import Tokenizer

_LABELS = {
    CLASSIFICATION: Field(FIELD),
    REGRESSION: Field(FIELD, dtype=np.float32),
    MULTI_LABEL: Field(FIELD, dtype=np.float32),
}


OTHER_TEXTS = {
    1: "one text, but the model was trained on pairs; give two (for a table: --text_a and --text_b)",
    2: "two texts, but the model was trained on single ones; give one (for a table: --text_a)",
}


SEPARATORS = (",", ";", "|", "/", "~")


def usual_separator(labels: Sequence[str]) -> str:
    """Returns the first separator that no label holds, so that several labels of a cell can be told apart."""
    return next((separator for separator in SEPARATORS if not any(separator in label for label in labels)), SEPARATORS[0])


Probabilities = Annotated[Mapping[str, Share], {"description": "of each label by name"}]

Decided = Optional[Label]  # Python 3.9 cannot evaluate Label | None
LabelSet = Annotated[Optional[tuple[str, ...]], {"description": "classes among which the true one is; none without --sets"}]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Prediction for one example."""

    id: Id
    label: Decided  # class, number, or labels that apply; None if the model abstains
    probabilities: Probabilities  # by label in class order; empty for regression
    label_set: LabelSet = None  # classes by probability, with the requested chance to hold the true one


# Fields by kind.
CLASS = hints_of(Prediction, label=Optional[str])
LABELS = hints_of(Prediction, label=tuple[str, ...])
NUMBER = hints_of(Prediction, label=float, probabilities=Annotated[Probabilities, {"maxProperties": 0}])


@dataclasses.dataclass(frozen=True)
class SentenceFamily(Family):
    """Sentences and pairs. Predictions are [E, L] logits, averaged over the windows of a long text."""

    labels: tuple[str, ...] = ()  # L names by class index; empty for regression
    kind: str = CLASSIFICATION  # one of `example.KINDS`
    metrics: tuple[str, ...] = ("accuracy",)  # keys of `bert_tf.metrics.METRICS`
    label_separator: str = SEPARATORS[0]  # between several labels of one example
    texts: int | None = None  # per row, 1 or 2; None if unknown or mixed
    text_a: str | None = None  # column of rows in memory, see `rows.RowColumns`
    text_b: str | None = None
    label_column: str = USUAL.label_column
    id_column: str | None = None
    decision: Decision = PUBLISHED

    trains_together = True
    file_patterns: ClassVar[tuple[str, ...]] = ("predictions*.tsv", "test_results*.tsv")
    # Few examples need more epochs, and regularization against memorizing them, so that seeds differ less; chosen by mean
    # and spread over ten seeds (benchmarks/accuracy.md).
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 8e-5,
        "train_batch_size": 8,
        "num_train_epochs": 6.0,
        "max_seq_length": 64,
        "freeze": "embeddings,0-1",
        "label_smoothing": 0.1,
    }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SentenceFamily:
        """Uses the default metrics: those of the task are not in the record."""
        labels, kind = tuple(record["labels"]), record["kind"]
        recorded = record.get("label_separator") if kind == MULTI_LABEL else None
        return cls(
            labels,
            kind,
            metrics.usual(kind, len(labels)),
            recorded or usual_separator(labels),
            texts=recorded_texts(record),
            decision=Decision.from_record(record),
            **dataclasses.asdict(RowColumns.from_settings(record)),
        )

    def as_trained(self, record: Mapping[str, Any]) -> SentenceFamily:
        """Returns the family with the number of texts per row used in training, and the model's decision rule."""
        return dataclasses.replace(self, texts=recorded_texts(record) or self.texts, decision=Decision.from_record(record))

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(len(self.labels) or 1, self.kind, self.decision.head_options)

    @property
    def targets(self) -> tuple[Field, ...]:
        field = _LABELS[self.kind]
        return (field._replace(width=len(self.labels)) if self.kind == MULTI_LABEL else field,)

    @property
    def may_have_no_label(self) -> bool:
        return self.kind == MULTI_LABEL

    @property
    def columns(self) -> RowColumns:
        return RowColumns(self.text_a, self.text_b, self.label_column, self.id_column)

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[SentenceExample]:
        """Requires the number of texts per row used in training."""
        examples = read_rows(rows, split, kind=self.kind if labelled else None, columns=self.columns)
        for number, example in enumerate(examples):
            self._refuse_other_texts(example, f"{split}: row {number}")
        if labelled and self.kind != REGRESSION:
            refuse_unknown_labels(examples, split, self.labels)
        return examples

    def features(self, examples: Sequence[SentenceExample], tokenizer: Tokenizer, limits: Limits) -> Features:
        """Gives every window the label of its text; raises `DataError` if the number of texts differs from training."""
        for example in examples:
            self._refuse_other_texts(example, example.guid)
        (field,) = self.targets
        return sentences.build(
            ((example.text_a, example.text_b) for example in examples),
            (field, self._label_ids(examples)),
            tokenizer,
            max_seq_length=limits.max_seq_length,
            long_text=limits.long_text,
        )

    def class_weights(self, features: Features) -> tuple[float, ...]:
        return balanced_weights(features.targets[FIELD][features.first_rows], self.head)

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[SentenceExample]) -> scores.Logits:
        del examples
        return scores.averaged(outputs["logits"], features.example_ids)

    def listed(self, predictions: scores.Logits, examples: Sequence[SentenceExample]) -> list[Prediction]:
        labels, sets = self._decided(predictions), scores.label_sets(predictions, self.labels, self.decision)
        values = [] if self.kind == REGRESSION else scores.scores(self.kind, predictions).tolist()
        each = (dict(zip(self.labels, row)) for row in values) if values else ({} for _ in examples)
        ids = (example.guid for example in examples)
        return [Prediction(*fields) for fields in zip(ids, labels, each, sets)]

    def _decided(self, predictions: scores.Logits) -> Sequence[Label | None]:
        """Returns E labels, None where the model abstains."""
        predicted = scores.predictions(self.kind, predictions, self.decision)
        labels = scores.decode(self.kind, predicted, self.labels)
        if self.decision.abstain_below is None:
            return labels
        return [None if out else label for label, out in zip(labels, scores.abstains(predictions, predicted, self.decision))]

    def evaluation(self, predictions: scores.Logits, examples: Sequence[SentenceExample]) -> Evaluation:
        labels = self._label_ids(examples)
        return evaluate_logits(self.head, self.labels, self.metrics, predictions, labels, self.decision)

    def mistakes(self, predictions: scores.Logits, examples: Sequence[SentenceExample]) -> list[dict[str, Any]]:
        return most_confident(self.head, self.labels, examples, predictions, self._label_ids(examples), self.decision)

    def labelled_logits(self, predictions: scores.Logits, examples: Sequence[SentenceExample]) -> list[LabelledLogits]:
        return scores.labelled_logits(self.kind, predictions, self._label_ids(examples))

    def files(
        self, predictions: scores.Logits, examples: Sequence[SentenceExample], *, suffix: str, published_suffix: str
    ) -> dict[str, str]:
        """Returns predictions.tsv (header, id, label, scores) and the published test_results.tsv (scores only)."""
        lines = "".join("\t".join(row) + "\n" for row in score_cells(self.head, predictions))
        published = {f"test_results{name}.tsv": lines for name in (suffix, published_suffix)}
        layout = self.layout(TSV)
        return {f"predictions{suffix}.tsv": layout.header() + layout.rows(examples, predictions), **published}

    def layout(self, form: str) -> TextLayout:
        """Columns: id, label, each label's probability or a number's score, and the label set if there is a rule for it."""
        of_scores = ["score"] if self.kind == REGRESSION else [f"probability_{name}" for name in self.labels]
        columns = ["id", "label", *of_scores, *(["label_set"] if self.decision.set_from is not None else [])]
        return TextLayout(columns, self._cells, form, self.label_separator)

    def _cells(self, examples: Sequence[SentenceExample], predictions: scores.Logits) -> Iterator[list[Any]]:
        numbers = [list(map(float, row)) for row in score_cells(self.head, predictions)]
        labels: Sequence[Any] = [number for number, *_ in numbers]
        if self.kind != REGRESSION:
            labels = self._decided(predictions)
        rows = ([example.guid, label, *row] for example, label, row in zip(examples, labels, numbers))
        if self.decision.set_from is None:
            return rows
        return ([*row, of_set] for row, of_set in zip(rows, scores.label_sets(predictions, self.labels, self.decision)))

    def _refuse_other_texts(self, example: SentenceExample, source: str) -> None:
        if self.texts not in (None, len(example.texts)):
            raise DataError(OTHER_TEXTS[len(example.texts)], source)

    def _label_ids(self, examples: Sequence[SentenceExample]) -> LabelArray:
        return encode([example.label for example in examples], self.head, self.labels)


def score_cells(head: HeadSpec, logits: scores.Logits) -> list[list[str]]:
    """Formats logits [E, L] as probabilities or numbers with enough digits to distinguish them."""
    cells: list[list[str]] = scores.scores(head.kind, logits).astype(str).tolist()
    return cells
