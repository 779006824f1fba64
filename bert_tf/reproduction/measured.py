"""Figures of a run here for each one that was published: read from its files, and from its own data."""

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
    """What training with one seed came to.

    Attributes:
      accuracy: on dev.
      loss: mean over dev.
      examples_per_second: of training, the median of what was logged.
      steps_per_second: the same for steps.
      collapsed: why nothing was learned; None where something was.
    """

    seed: int
    steps: int
    accuracy: float
    loss: float
    examples_per_second: float
    steps_per_second: float
    collapsed: str | None = None


@dataclasses.dataclass(frozen=True)
class Device:
    """What the run computed on.

    Attributes:
      kind: CPU, GPU.
      model: the maker's name.
      limit_mb: most memory for tensors, MiB; None where no limit was set.
    """

    kind: str
    model: str
    limit_mb: int | None = None


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the log shows of an example.

    Attributes:
      tokens: by field of a `facts.TokenLine`.
    """

    tokens: Mapping[str, Sequence[object]]
    label: str
    label_id: int


@dataclasses.dataclass(frozen=True)
class Measured:
    """Everything that a published run is compared with.

    Attributes:
      outcomes: one for each seed.
      config: the model.
      vocabulary: `Vocabulary.fingerprint`.
      examples: of the splits.
      shown: the first examples of dev, by guid.
      features: shapes by name; None is a size left open.
      variables: of the model, by name.
      forms: of the lines of the log.
      device: that computed.
      num_train_steps: where the length was asked for.
    """

    outcomes: tuple[Outcome, ...]
    config: BertConfig
    vocabulary: str
    examples: Mapping[str, int]
    shown: Mapping[str, Shown]
    features: Mapping[str, tuple[int | None, ...]]
    variables: Mapping[str, Variable]
    forms: Sequence[FormFound]
    device: Device
    num_train_steps: int | None = None


def examples_per_second(folder: Path) -> float:
    """Returns the median speed of a training: of all its lines, which earlier commands may have written too.

    Args:
      folder: of the run.
    """
    lines = (folder / run_layout.METRICS).read_text(encoding="utf-8").splitlines()
    speeds = [documents.json_value(line)["examples_per_second"] for line in lines]
    return float(statistics.median(speeds[1:] or speeds))  # the first has the first step in it, which is slow


def features_of(task: Task, examples: Sequence[Example], vocabulary: Vocabulary, *, max_seq_length: int) -> Features:
    """Returns the features of examples, made as for a run.

    Args:
      task: what is learned.
      examples: of a split.
      vocabulary: of the tokenizer, which lower-cases.
      max_seq_length: longest input in word pieces.
    """
    return task.family.features(examples, WordPieceTokenizer(vocabulary, lower_case=True), Limits(max_seq_length))


def shown(examples: Sequence[Example], features: Features, vocabulary: Vocabulary, *, max_seq_length: int) -> dict[str, Shown]:
    """Returns what the log shows of examples, by guid.

    Args:
      examples: of a split.
      features: of these examples, a row for each.
      vocabulary: of the tokenizer.
      max_seq_length: to which rows are padded.
    """
    batch = features.batch(np.arange(len(examples)), max_seq_length)
    found = {}
    for row, example in enumerate(examples):
        ids = batch["input_ids"][row]
        tokens = [vocabulary.tokens[i] for i in ids[: features.lengths[row]]]
        fields = {TOKENS: tokens, INPUT_IDS: ids.tolist()}
        found[example.guid] = Shown(fields, str(example.label), int(batch["label_ids"][row]))
    return found


def variables(trained: str, start: str, config: BertConfig) -> dict[str, Variable]:
    """Returns the variables of a trained model.

    Args:
      trained: its last checkpoint, without the optimizer's moments.
      start: the checkpoint that it began with.
      config: the model.

    Raises:
      CheckpointError: a checkpoint is missing or damaged.
    """
    loaded = set(plan_restore(CheckpointReader(start), config, ()).loaded)
    shapes = CheckpointReader(trained).shapes
    return {name: Variable(shape, name in loaded) for name, shape in shapes.items() if name != _STEP}
