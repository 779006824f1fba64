"""Token classification as a family of tasks, from files or rows in memory: entities in IOB2, or plain tags.

Shapes: E sentences, W words of all of them, L tags.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.tags import CONLL2003, TagSettings, predictions, schemes
from bert_tf.extensions.tags import features as tags
from bert_tf.extensions.tags.columns import TagExample, TagReader, found_labels, read_rows
from bert_tf.extensions.tags.evaluation import ENTITY_METRICS, PLAIN_METRICS, evaluate
from bert_tf.extensions.tags.predictions import TagLayout, TagPrediction, TagPredictions
from bert_tf.features.columns import Features
from bert_tf.fields import Field
from bert_tf.head_spec import TAGS, HeadSpec
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import DEV, TEST, TRAIN, Family, Limits, Outputs
from bert_tf.tasks.decision import PUBLISHED, Decision
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.families import with_rules
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.in_memory import label_names
from bert_tf.tasks.names import JSONL, PARQUET, TSV
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.sentence.rows import records
from bert_tf.tasks.sentence.scores import balanced_weights
from bert_tf.tasks.settings import TaskSettings, listed_labels
from bert_tf.tokenization.tokenizer import Tokenizer

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TagFamily(Family):
    """Token classification. Predictions are the logits of all words, see `TagPredictions`."""

    labels: tuple[str, ...] = ()  # L tags, entities in IOB2
    constrained_decoding: bool = False  # predict only valid tag sequences
    decision: Decision = PUBLISHED

    kind: ClassVar[str] = TAGS
    targets: ClassVar[tuple[Field, ...]] = tags.FIELDS
    file_patterns: ClassVar[tuple[str, ...]] = ("predictions*.conll", "predictions*.jsonl")
    rules: ClassVar[tuple[str, ...]] = ("constrained_decoding",)
    trains_on_windows = True
    reads_words = True
    sample_settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 3e-4,
        "train_batch_size": 8,
        "num_train_epochs": 6.0,
        "max_seq_length": 64,
    }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TagFamily:
        return cls(tuple(record["labels"]), bool(record.get("constrained_decoding")), Decision.from_record(record))

    def as_trained(self, record: Mapping[str, Any]) -> TagFamily:
        constrained = bool(record.get("constrained_decoding", self.constrained_decoding))
        return dataclasses.replace(self, constrained_decoding=constrained, decision=Decision.from_record(record))

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(len(self.labels), self.kind, self.decision.head_options)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ENTITY_METRICS if schemes.are_of_entities(self.labels) else PLAIN_METRICS

    def no_effect(self, rule: str) -> str:
        is_plain = rule == "constrained_decoding" and not schemes.are_of_entities(self.labels)
        return "is for tags of entities; any plain tag may follow another" if is_plain else ""

    def from_rows(self, rows: Iterable[Any], split: str, *, labelled: bool) -> list[TagExample]:
        return read_rows(rows, split, labels=self.labels if labelled else None)

    def features(self, examples: Sequence[TagExample], tokenizer: Tokenizer, limits: Limits) -> Features:
        """Every word is read, even if `limits` would cut long texts."""
        number_of = {label: number for number, label in enumerate(self.labels)}
        numbers = [number_of[tag] for example in examples for tag in example.label or self.labels[:1] * len(example.words)]
        words = [example.words for example in examples]
        return tags.build(words, np.array(numbers, np.int32), tokenizer, max_seq_length=limits.max_seq_length)

    def class_weights(self, features: Features) -> tuple[float, ...]:
        targets = features.targets[tags.TAGS.name]
        return balanced_weights(targets[targets != tags.NO_TAG], HeadSpec(len(self.labels)))

    def predictions(self, outputs: Outputs, features: Features, examples: Sequence[TagExample]) -> TagPredictions:
        return predictions.of_outputs(outputs["logits"], features, examples, self.labels)

    def listed(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> list[TagPrediction]:
        return predictions.listed(predicted, examples, self.labels, constrained=self.constrained_decoding)

    def evaluation(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> Evaluation:
        return evaluate(predicted, examples, self.labels, constrained=self.constrained_decoding)

    def mistakes(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> list[dict[str, Any]]:
        return predictions.most_confident(examples, self.listed(predicted, examples))

    def labelled_logits(self, predicted: TagPredictions, examples: Sequence[TagExample]) -> list[LabelledLogits]:
        number_of = {label: number for number, label in enumerate(self.labels)}
        numbers = np.array([number_of[tag] for example in examples for tag in example.label or ()], np.int64)
        return [LabelledLogits(predicted.logits[predicted.read], numbers[predicted.read])]

    def layout(self, form: str) -> TagLayout:
        return TagLayout(self.labels, self.constrained_decoding, form)


_OF_CONLL2003 = schemes.labels_of(f"B-{name}" for name in ("LOC", "MISC", "ORG", "PER"))
_PATTERNS = {  # names of the shared task, then other common ones
    TRAIN: ("eng.train", "train.txt", "train.conll", "train.jsonl"),
    DEV: ("eng.testa", "valid.txt", "dev.txt", "dev.conll", "dev.jsonl"),
    TEST: ("eng.testb", "test.txt", "test.conll", "test.jsonl"),
}


def task(name: str, task_settings: TaskSettings, labels: Sequence[str] | None = None) -> FileTask:
    """CoNLL-2003 (Tjong Kim Sang and De Meulder, 2003): persons, places, organizations and others; or custom data.

    Labels of custom data come from a trained model, else from the settings, else from the training file.
    """
    custom, settings = task_settings.custom, task_settings.extensions.tags
    listed = tuple(listed_labels(custom)) if name != CONLL2003 else ()
    if labels and listed and set(listed) != set(labels):
        raise FlagError(f"--labels={custom.labels}: the model was trained on {', '.join(labels)}")
    if schemes.are_of_entities(listed) and schemes.OUTSIDE in listed:
        listed = schemes.labels_of(listed)
    known_labels = _OF_CONLL2003 if name == CONLL2003 else tuple(labels or listed)
    for column in ("word_column", "tag_column"):
        if getattr(settings, column) == 0:
            raise FlagError(f"--{column}=0: columns are counted from 1, from the end with -1")
    if custom.file_format not in (None, TSV, JSONL, PARQUET):
        raise FlagError(f"--file_format={custom.file_format}: words and tags are in columns (tsv), in {JSONL} or in {PARQUET}")
    files = _Files(TagReader(settings, custom.file_format), custom.train_file, custom.dev_file, known_labels)
    family = functools.partial(files.family, settings.constrained_decoding, is_trained=bool(labels))
    named = [file for file in (custom.train_file, custom.dev_file, custom.test_file) if file]
    if not labels and named and all(map(files.reader.has_objects, named)):
        given = [name for name in ("word_column", "tag_column") if getattr(settings, name) != getattr(TagSettings, name)]
        if given:
            raise FlagError(f"--{given[0]}: {named[0]} has objects, whose words and tags have names; leave it out")
    return FileTask(name, family, files.read_examples, custom, _PATTERNS if name == CONLL2003 else {})


@dataclasses.dataclass(frozen=True)
class _Files:
    """The files of a task, and their tags."""

    reader: TagReader
    train_file: str | None
    dev_file: str | None
    listed: tuple[str, ...]  # tags; if empty, those of the training file

    def family(self, constrained_decoding: bool, *, is_trained: bool) -> Family:
        if is_trained:
            return TagFamily(self.labels, constrained_decoding)
        return with_rules(TagFamily(self.labels), {"constrained_decoding": constrained_decoding})

    def read_examples(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[TagExample]:
        return self.reader.read_examples(source, split, report, lambda: self.labels)

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """The given tags, or those of the training file: entities in IOB2; plain tags most frequent first.

        Includes those that occur only in the dev file: a rare part of speech there is not an error. Raises `DataError` for
        too few tags, `FlagError` without listed tags or a training file.
        """
        if self.listed:
            return self.listed
        if not self.train_file:
            raise FlagError("--labels=O,B-X,I-X is required without a --train_file")
        counts = collections.Counter(tag for tags in self.reader.tags(self.train_file) for tag in tags)
        if len(counts) < 2:
            list(self.reader.tags(self.train_file, tables.refuse))  # raises if no row can be used
            present = f"every word has the tag {next(iter(counts))!r}" if counts else "no word has a tag"
            raise DataError(f"{present}; at least two tags are required", self.train_file)
        problem = schemes.problem_of(counts)
        if problem:
            raise DataError(f"{problem}; if they are plain tags, list all with --labels", self.train_file)
        of_dev = collections.Counter(tag for tags in (self.reader.tags(self.dev_file) if self.dev_file else ()) for tag in tags)
        first = {path: next(iter(tags)) for path, tags in ((self.train_file, counts), (self.dev_file, of_dev)) if path and tags}
        below = counts + of_dev - collections.Counter(first.values())
        for path, tag in first.items():
            if tag not in below and not schemes.is_of_entity(tag) and not self.reader.has_objects(path):
                hint = "if the first line is a header, delete it, else list all tags with --labels"
                _LOG.warning("%s: the first tag, %r, occurs nowhere else; %s", path, tag, hint)
        return schemes.labels_of_counts(counts, of_dev)


class TagTask(RowsTask):
    """Token classification from rows in memory: pairs of words and tags, or mappings with `tokens` and `tags`.

    task = TagTask(train=[(["Ann", "left", "Rome"], ["B-PER", "O", "B-LOC"])])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        labels: Iterable[str] | None = None,
        constrained_decoding: bool = False,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict: words, or texts.
          labels: all tags, entities in IOB2; by default those of `train`.
          constrained_decoding: whether to predict only valid tag sequences.

        Raises:
          FlagError: `labels` are not distinct names, or plain tags shall be constrained.
          DataError: a row has another format or an unknown tag; names split and row. Also raised if `labels` is None and
            `train` does not have at least two tags.
        """
        rows = list(() if train is None else records(train, TRAIN))
        tag_names = label_names(labels, TAGS) or found_labels(rows, TRAIN)
        family = with_rules(TagFamily(tag_names), {"constrained_decoding": constrained_decoding})
        super().__init__(family, None if train is None else rows, dev, test)
