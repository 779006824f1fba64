"""A family that the package does not know, registered from outside: a tag for each word, in windows where texts are long."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.features.columns import Features
from bert_tf.features.long_text import WINDOWS
from bert_tf.fields import TOKEN, Field
from bert_tf.head_spec import HeadMemory, HeadSpec
from bert_tf.io import documents
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks import families, names, tables
from bert_tf.tasks import registry as tasks
from bert_tf.tasks.base import Family
from bert_tf.tasks.evaluation import Evaluation

tf1 = tf.compat.v1

KIND, NAME = "toy-tags", "toy-tags"
TAGS = ("other", "weather", "food")
NO_TAG = -1  # of tokens that begin no word


@dataclasses.dataclass(frozen=True)
class TagExample:
    guid: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (" ".join(self.words),)


@dataclasses.dataclass(frozen=True)
class Lines:
    """One line of JSON for each example."""

    def header(self) -> str:
        return ""

    def rows(self, examples: Sequence[TagExample], predictions: Sequence[Sequence[str]]) -> str:
        pairs = zip(examples, predictions)
        return "".join(documents.to_json({"id": example.guid, "tags": tags}) + "\n" for example, tags in pairs)


@dataclasses.dataclass(frozen=True)
class TagFamily(Family):
    """Predictions are a tuple of tags for each example."""

    labels: tuple[str, ...] = TAGS

    kind = KIND
    metrics = ("tag_accuracy",)
    targets = (Field("tag_ids", TOKEN, padding=NO_TAG),)
    file_patterns = ("predictions*.jsonl",)
    trains_on_windows = True

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TagFamily:
        return cls(tuple(record["labels"]))

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(len(self.labels), KIND)

    def from_rows(self, rows, split, *, labelled) -> list[TagExample]:
        pairs = ((row[0], row[1]) if labelled else (row, None) for row in rows)
        return [TagExample(f"{split}-{n}", tuple(words), tags and tuple(tags)) for n, (words, tags) in enumerate(pairs)]

    def features(self, examples, tokenizer, limits) -> Features:
        rows = [(n, row) for n, example in enumerate(examples) for row in self._rows(example, tokenizer, limits)]
        marks = tokenizer.vocabulary
        ids = [[marks.cls_id, *(piece for pieces, _ in row for piece in pieces), marks.sep_id] for _, row in rows]
        tags = [[NO_TAG, *(t for pieces, tag in row for t in (tag, *[NO_TAG] * (len(pieces) - 1))), NO_TAG] for _, row in rows]
        lengths = np.array([len(row) for row in ids], np.int32)
        return Features(
            token_ids=np.array([i for row in ids for i in row], np.int32),
            lengths=lengths,
            first_lengths=lengths,
            targets={"tag_ids": np.array([tag for row in tags for tag in row], np.int32)},
            fields=self.targets,
            example_ids=np.array([n for n, _ in rows], np.int32),
            weights=np.array([len(row) for _, row in rows], np.int32),
        )

    def _rows(self, example, tokenizer, limits) -> list[list[tuple[Sequence[int], int]]]:
        """Returns pieces and tag of the words of each row; of cut texts the first row alone."""
        tags = example.label or [self.labels[0]] * len(example.words)
        rows: list[list[Any]] = [[]]
        for word, tag in zip(example.words, tags):
            pieces = tokenizer.ids(word)
            if sum(len(others) for others, _ in rows[-1]) + len(pieces) > limits.max_seq_length - 2:
                rows.append([])
            rows[-1].append((pieces, self.labels.index(tag)))
        return rows if limits.long_text == WINDOWS else rows[:1]

    def predictions(self, outputs, features, examples) -> list[tuple[str, ...]]:
        begins = features.targets["tag_ids"] != NO_TAG  # [total]
        example_of = np.repeat(features.example_ids, features.lengths)[begins]
        tag_ids = outputs["tag_logits"].argmax(axis=-1)[begins]
        known = [[self.labels[tag] for tag in tag_ids[example_of == n]] for n in range(len(examples))]
        cut = [[self.labels[0]] * (len(example.words) - len(tags)) for example, tags in zip(examples, known)]
        return [(*tags, *rest) for tags, rest in zip(known, cut)]

    def listed(self, predictions, examples) -> list[TagExample]:
        return [dataclasses.replace(example, label=tags) for example, tags in zip(examples, predictions)]

    def evaluation(self, predictions, examples) -> Evaluation:
        right = [a == b for tags, example in zip(predictions, examples) for a, b in zip(tags, example.label)]
        return Evaluation({"tag_accuracy": float(np.mean(right))}, loss=float(1 - np.mean(right)), examples=len(examples))

    def mistakes(self, predictions, examples) -> list[dict[str, Any]]:
        return [
            {"id": example.guid, "text_a": " ".join(example.words), "label": list(example.label), "predicted": list(tags)}
            for tags, example in zip(predictions, examples)
            if tags != example.label
        ]

    def layout(self, form: str) -> Lines:
        del form
        return Lines()


@dataclasses.dataclass(frozen=True)
class TagHead:
    num_labels: int

    inputs = ()
    targets = ("tag_ids",)
    reads_pooled, reads_tokens = False, True
    reads_places = None
    reads_word_table = False
    memory = HeadMemory()
    fewest_examples = 1
    loss_options = frozenset()

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (Field("tag_logits", TOKEN, np.float32, width=self.num_labels),)

    def variables(self, config) -> dict[str, tuple[int, ...]]:
        return {"head/tags/kernel": (config.hidden_size, self.num_labels), "head/tags/bias": (self.num_labels,)}

    def compute(self, encoded, features, config, execution) -> dict[str, tf.Tensor]:
        del features
        with tf1.variable_scope("head"):
            dropped = execution.dropout(encoded.sequence, config.hidden_dropout_prob)  # [B, T, D]
            shape = self.variables(config)["head/tags/kernel"]
            kernel = tf1.get_variable("tags/kernel", shape, initializer=tf1.truncated_normal_initializer(stddev=0.1, seed=7))
            bias = tf1.get_variable("tags/bias", shape[1:], initializer=tf1.zeros_initializer())
            return {"tag_logits": tf.tensordot(dropped, kernel, 1) + bias}

    def losses(self, outputs, features, options) -> tf.Tensor:
        del options
        real = tf.cast(tf.not_equal(features["tag_ids"], NO_TAG), tf.float32)  # [B, T]
        tags = tf.maximum(features["tag_ids"], 0)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags, logits=outputs["tag_logits"])
        return tf.reduce_sum(each * real, axis=1)

    def serving(self, outputs) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(outputs["tag_logits"])}


class TagTask:
    """train.tsv, dev.tsv and test.tsv: words, and their tags, with spaces between."""

    name, family, reads_folder = NAME, TagFamily(), True

    def splits(self, data_dir, purpose) -> tuple[str, ...]:
        del data_dir
        return (purpose,)

    def file(self, data_dir, split) -> Path:
        return Path(data_dir) / f"{split}.tsv"

    def examples(self, data_dir, split) -> list[TagExample]:
        examples = list(self.stream(self.file(data_dir, split), split))
        if not examples:
            raise DataError("no examples", self.file(data_dir, split))
        return examples

    def stream(self, source, split, report=tables.refuse) -> Iterator[TagExample]:
        def example(line: int, row: list[str]) -> TagExample:
            tags = tuple(row[1].split()) if split != "test" else None
            return TagExample(f"{split}-{line - 1}", tuple(row[0].split()), tags)

        columns = ["words"] if split == "test" else ["words", "tags"]
        return tables.open_table(source, form=names.TSV).read_rows(columns, example, report)

    def published_name(self, split: str) -> str:
        return split

    def submission(self, split: str) -> None:
        """No server knows it."""


def register() -> None:
    """Makes family, head and task known to this process."""
    families.register(KIND, TagFamily)
    heads.register(KIND, TagHead)
    tasks.register(TagTask())
