"""Token classification as a family of tasks: entities in IOB2, or plain tags such as parts of speech.

Shapes: E sentences, W words of all of them, L tags.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.features import tags
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import TAGS, HeadSpec
from bert_tf.tasks.base import Limits, Outputs
from bert_tf.tasks.tables import JSONL, TSV
from bert_tf.tasks.tags import mistakes, predictions, schemes
from bert_tf.tasks.tags.evaluation import ENTITY_METRICS, PLAIN_METRICS, TagEvaluation, evaluate
from bert_tf.tasks.tags.example import TagExample
from bert_tf.tasks.tags.predictions import TagLayout, TagPrediction, TagPredictions
from bert_tf.tasks.tags.rows import read_rows
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class TagFamily:
    """Token classification. Predictions are the logits of all words, see `TagPredictions`."""

    labels: tuple[str, ...]  # L tags, entities in IOB2
    constrained_decoding: bool = False  # predict only valid tag sequences

    kind: ClassVar[str] = TAGS
    targets: ClassVar[tuple[Field, ...]] = tags.FIELDS
    file_patterns: ClassVar[tuple[str, ...]] = ("predictions*.conll", "predictions*.jsonl")
    rules: ClassVar[tuple[str, ...]] = ("constrained_decoding",)
    trains_on_windows, trains_together = True, False
    usual_settings: ClassVar[Mapping[str, Any]] = {}
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 3e-4,
        "train_batch_size": 8,
        "num_train_epochs": 6.0,
        "max_seq_length": 64,
    }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TagFamily:
        return cls(tuple(record["labels"]), bool(record.get("constrained_decoding")))

    def as_trained(self, record: Mapping[str, Any]) -> TagFamily:
        constrained = bool(record.get("constrained_decoding", self.constrained_decoding))
        return dataclasses.replace(self, constrained_decoding=constrained)

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(len(self.labels), self.kind)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ENTITY_METRICS if schemes.are_of_entities(self.labels) else PLAIN_METRICS

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[TagExample]:
        return read_rows(rows, split, labels=self.labels if labelled else None)

    def features(self, examples: Sequence[TagExample], tokenizer: WordPieceTokenizer, limits: Limits) -> Features:
        """Every word is read, even if `limits` would cut long texts."""
        number_of = {label: number for number, label in enumerate(self.labels)}
        numbers = [number_of[tag] for example in examples for tag in example.label or self.labels[:1] * len(example.words)]
        words = [example.words for example in examples]
        return tags.build(words, np.array(numbers, np.int32), tokenizer, max_seq_length=limits.max_seq_length)

    def class_weights(self, features: Features) -> tuple[float, ...]:
        """Returns words / (L count) per tag; 1 for a tag that does not occur."""
        found = features.targets[tags.TAGS.name]
        counts = np.bincount(found[found != tags.NO_TAG], minlength=len(self.labels))
        return tuple(np.where(counts > 0, counts.sum() / (len(counts) * np.maximum(counts, 1)), 1.0).tolist())

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[TagExample]) -> TagPredictions:
        return predictions.of_outputs(outputs["logits"], features, examples, self.labels)

    def listed(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> list[TagPrediction]:
        return predictions.listed(predicted, examples, self.labels, constrained=self.constrained_decoding)

    def evaluation(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> TagEvaluation:
        return evaluate(predicted, examples, self.labels, constrained=self.constrained_decoding)

    def mistakes(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> list[dict[str, Any]]:
        return mistakes.most_confident(examples, self.listed(predicted, examples))

    def files(
        self, predicted: TagPredictions, examples: Sequence[TagExample], *, suffix: str, published_suffix: str
    ) -> dict[str, str]:
        """Returns predictions.conll, the input with an added column, and predictions.jsonl with entities."""
        del published_suffix
        return {
            f"predictions{suffix}.conll": self.layout(TSV).rows(examples, predicted),
            f"predictions{suffix}.jsonl": self.layout(JSONL).rows(examples, predicted),
        }

    def layout(self, form: str) -> TagLayout:
        return TagLayout(self.labels, self.constrained_decoding, form)

    def record(self) -> dict[str, Any]:
        """Without decoding, which does not affect training."""
        return {"labels": list(self.labels), "kind": self.kind}
