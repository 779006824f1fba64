"""Everything that is known of a job of fine-tuning before its graph is built."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import run_layout
from bert_tf.batch.trained import Trained
from bert_tf.config import BertConfig
from bert_tf.estimator import run_folder
from bert_tf.estimator.time_to_target import Target
from bert_tf.inputs.cache import examples_digest
from bert_tf.inputs.pipeline import Schedule
from bert_tf.jobs import goals, loss_settings
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.jobs.loss_settings import MakeLossOptions
from bert_tf.jobs.sources import DataSource, ModelSource
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import TRAIN, Example, Task
from bert_tf.tasks.on_disk import OnDisk
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


class PhasePlan(NamedTuple):
    """A phase of training.

    Attributes:
      split: that is trained on.
      max_seq_length: most tokens of a row.
      batch_size: units of a step.
      steps: how many; None to go by epochs.
    """

    split: str
    max_seq_length: int
    batch_size: int
    steps: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """Settings, task, examples and weights.

    Attributes:
      settings: with what recipe and record of a run fill in.
      task: what is learned.
      data: where its files are.
      source: files of the model.
      weights: what is trained from, or evaluated.
      splits: of each purpose that is wanted.
      examples: of each split.
      machine: that computes.
    """

    settings: FineTuneConfig
    task: Task
    data: DataSource
    source: ModelSource
    weights: Trained
    splits: Mapping[str, tuple[str, ...]]
    examples: Mapping[str, Sequence[Example]]
    machine: Machine

    @property
    def config(self) -> BertConfig:
        """Of the encoder."""
        return self.weights.config

    @property
    def vocabulary(self) -> Vocabulary:
        """Of the tokenizer."""
        return self.weights.vocabulary

    @property
    def tokenizer(self) -> WordPieceTokenizer:
        """Cuts the texts of all splits: what it remembers of words is of use to each."""
        return self.weights.tokenizer

    @property
    def output_dir(self) -> Path:
        """Folder of checkpoints."""
        return self.settings.output.folder

    @functools.cached_property
    def results_dir(self) -> Path:
        """Folder of results: that of the checkpoints, or one in it where the model was trained on another task."""
        folder, task = self.output_dir, self.task.name
        trained_on = task if self.settings.actions.do_train else run_folder.trained(folder).get("task_name", task)
        return folder if trained_on == task else folder / task

    @property
    def run_dir(self) -> Path:
        """Folder of the run that is trained or evaluated; the best checkpoint and averages have folders in it."""
        if self.settings.actions.do_train:
            return self.output_dir
        folder = self.weights.folder
        return folder.parent if folder.name in run_layout.MODELS else folder

    @functools.cached_property
    def target(self) -> Target | None:
        """What --target_metric wants, see `goals.target`."""
        return goals.target(self.settings.train, self.task)

    @functools.cached_property
    def best_by(self) -> str | None:
        """The result that tells the best checkpoint, see `goals.best_by`."""
        return goals.best_by(self.settings.train, self.task)

    @functools.cached_property
    def loss_options(self) -> MakeLossOptions:
        """How the loss of training is computed, see `loss_settings.loss_options`."""
        return loss_settings.loss_options(self.settings.train, self.task)

    @property
    def train_split(self) -> str:
        """Name of the split to train on."""
        return self.splits[TRAIN][0]

    @property
    def phases(self) -> tuple[PhasePlan, ...]:
        """What is trained on, one after the other; all but pre-training have one."""
        train, then = self.settings.train, self.settings.of_task.pretraining
        splits, length = self.splits[TRAIN], self.settings.data.max_seq_length
        first = PhasePlan(splits[0], length, train.train_batch_size, train.num_train_steps)
        batch_size, steps = then.phase2_train_batch_size or first.batch_size, then.phase2_num_train_steps
        return first, *(PhasePlan(split, then.phase2_max_seq_length, batch_size, steps) for split in splits[1:])

    @property
    def least_schedule(self) -> Schedule:
        """How long to train where each example is one row of features; it has one at least."""
        return self.schedule(len(self.examples[self.train_split]))

    @property
    def least_steps(self) -> int:
        """The last step where each example is one row of features."""
        return self.least_schedule.steps + sum(phase.steps or 0 for phase in self.phases[1:])

    def schedule(self, rows: int) -> Schedule:
        """Returns how long to train on so many rows."""
        train = self.settings.train
        return Schedule(rows, train.train_batch_size, train.num_train_epochs, train.num_train_steps)

    def digest(self, split: str) -> str:
        """Returns the sha256 of the examples of a split."""
        examples = self.examples[split]
        if isinstance(examples, OnDisk):
            return examples.digest
        if split not in self._digests:
            self._digests[split] = examples_digest(examples)
        return self._digests[split]

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        return {}
