"""Figures of a run here for each published one, read from its files and its data."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bert_tf import documents, run_layout
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.features.columns import Features
from bert_tf.reproduction.facts import INPUT_IDS, TOKENS, Variable
from bert_tf.reproduction.forms import FormFound
from bert_tf.tasks.base import Example, Limits, Task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_STEP = "global_step"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of training with one seed."""

    seed: int
    steps: int
    accuracy: float  # on dev
    loss: float  # mean over dev
    examples_per_second: float  # of training, the median of the logged ones
    steps_per_second: float  # likewise
    collapsed: str | None = None  # why nothing was learned; None if something was


@dataclasses.dataclass(frozen=True)
class Device:
    kind: str  # CPU, GPU
    model: str  # the maker's name
    limit_mb: int | None = None  # tensor memory limit, MiB; None if not set


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the log shows of an example."""

    tokens: Mapping[str, Sequence[object]]  # by field of a `facts.TokenLine`
    label: str
    label_id: int


@dataclasses.dataclass(frozen=True)
class Measured:
    """Everything that is compared with a published run."""

    outcomes: tuple[Outcome, ...]  # one for each seed
    config: BertConfig
    vocabulary: str  # `Vocabulary.fingerprint`
    examples: Mapping[str, int]  # by split
    shown: Mapping[str, Shown]  # the first dev examples, by guid
    features: Mapping[str, tuple[int | None, ...]]  # shapes by name; None is an open size
    variables: Mapping[str, Variable]  # of the model, by name
    forms: Sequence[FormFound]  # of the log's lines
    device: Device
    num_train_steps: int | None = None  # None if the length was not set


def examples_per_second(folder: Path) -> float:
    """Returns the median logged training speed, lines of earlier commands included."""
    lines = (folder / run_layout.METRICS).read_text(encoding="utf-8").splitlines()
    speeds = [documents.json_value(line)["examples_per_second"] for line in lines]
    return float(statistics.median(speeds[1:] or speeds))  # the first has the first step in it, which is slow


def features_of(task: Task, examples: Sequence[Example], vocabulary: Vocabulary, *, max_seq_length: int) -> Features:
    """Returns the features of a split's examples, as a run makes them; the tokenizer lower-cases."""
    return task.family.features(examples, WordPieceTokenizer(vocabulary, lower_case=True), Limits(max_seq_length))


def shown(examples: Sequence[Example], features: Features, vocabulary: Vocabulary, *, max_seq_length: int) -> dict[str, Shown]:
    """Returns what the log shows of examples, by guid; `features` has one row for each example."""
    batch = features.batch(np.arange(len(examples)), max_seq_length)
    found = {}
    for row, example in enumerate(examples):
        ids = batch["input_ids"][row]
        tokens = [vocabulary.tokens[i] for i in ids[: features.lengths[row]]]
        fields = {TOKENS: tokens, INPUT_IDS: ids.tolist()}
        found[example.guid] = Shown(fields, str(example.label), int(batch["label_ids"][row]))
    return found


def variables(trained: str, start: str, config: BertConfig) -> dict[str, Variable]:
    """Returns the variables of a trained model; `trained` is its last checkpoint without moments, `start` its first.

    Raises CheckpointError if a checkpoint is missing or damaged.
    """
    loaded = set(plan_restore(CheckpointReader(start), config, ()).loaded)
    shapes = CheckpointReader(trained).shapes
    return {name: Variable(shape, name in loaded) for name, shape in shapes.items() if name != _STEP}
