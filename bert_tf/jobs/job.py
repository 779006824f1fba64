"""Everything known of a fine-tuning job before its graph is built."""

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
from bert_tf.estimator.evaluations import Target
from bert_tf.inputs.cache import examples_digest
from bert_tf.inputs.pipeline import Schedule
from bert_tf.jobs import objectives
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.jobs.objectives import MakeLossOptions
from bert_tf.jobs.sources import DataSource, ModelSource
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import TRAIN, Example, Task
from bert_tf.tasks.on_disk import OnDisk
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


class PhasePlan(NamedTuple):
    split: str
    max_seq_length: int  # tokens per row
    batch_size: int  # units per step
    steps: int | None  # None to count epochs


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    settings: FineTuneConfig  # completed by recipe and run record
    task: Task
    data: DataSource
    source: ModelSource
    weights: Trained  # to train from or evaluate
    splits: Mapping[str, tuple[str, ...]]  # by purpose
    examples: Mapping[str, Sequence[Example]]  # by split
    machine: Machine

    @property
    def config(self) -> BertConfig:
        return self.weights.config

    @property
    def vocabulary(self) -> Vocabulary:
        return self.weights.vocabulary

    @property
    def tokenizer(self) -> WordPieceTokenizer:
        """Shared by all splits, for its cache of words."""
        return self.weights.tokenizer

    @property
    def output_dir(self) -> Path:
        return self.settings.output.folder

    @functools.cached_property
    def results_dir(self) -> Path:
        """Folder of results: that of the checkpoints, or one in it if the model was trained on another task."""
        folder, task = self.output_dir, self.task.name
        trained_on = task if self.settings.actions.do_train else run_folder.trained(folder).get("task_name", task)
        return folder if trained_on == task else folder / task

    @property
    def run_dir(self) -> Path:
        """Folder of the run trained or evaluated; contains folders of the best checkpoint and averages."""
        if self.settings.actions.do_train:
            return self.output_dir
        folder = self.weights.folder
        return folder.parent if folder.name in run_layout.MODELS else folder

    @functools.cached_property
    def target(self) -> Target | None:
        return objectives.target(self.settings.train, self.task)

    @functools.cached_property
    def best_by(self) -> str | None:
        return objectives.best_by(self.settings.train, self.task)

    @functools.cached_property
    def loss_options(self) -> MakeLossOptions:
        return objectives.loss_options(self.settings.train, self.task)

    @property
    def train_split(self) -> str:
        return self.splits[TRAIN][0]

    @property
    def phases(self) -> tuple[PhasePlan, ...]:
        """Phases in order; only pre-training has several."""
        train, then = self.settings.train, self.settings.of_task.pretraining
        splits, length = self.splits[TRAIN], self.settings.data.max_seq_length
        first = PhasePlan(splits[0], length, train.train_batch_size, train.num_train_steps)
        batch_size, steps = then.phase2_train_batch_size or first.batch_size, then.phase2_num_train_steps
        return first, *(PhasePlan(split, then.phase2_max_seq_length, batch_size, steps) for split in splits[1:])

    @property
    def least_schedule(self) -> Schedule:
        """Lower bound of the schedule: one row of features per example."""
        return self.schedule(len(self.examples[self.train_split]))

    @property
    def least_steps(self) -> int:
        """Last step if each example is one row of features."""
        return self.least_schedule.steps + sum(phase.steps or 0 for phase in self.phases[1:])

    def schedule(self, rows: int) -> Schedule:
        train = self.settings.train
        return Schedule(rows, train.train_batch_size, train.num_train_epochs, train.num_train_steps)

    def digest(self, split: str) -> str:
        examples = self.examples[split]
        if isinstance(examples, OnDisk):
            return examples.digest
        if split not in self._digests:
            self._digests[split] = examples_digest(examples)
        return self._digests[split]

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        return {}
