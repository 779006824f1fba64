"""A job of fine-tuning before its graph is built: settings resolved, files found and read."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from bert_tf.batch.job import Given
from bert_tf.batch.trained import Trained, described
from bert_tf.config import BertConfig
from bert_tf.estimator import best, run_folder
from bert_tf.estimator.time_to_target import Target
from bert_tf.inputs.cache import examples_digest
from bert_tf.inputs.pipeline import Schedule
from bert_tf.jobs import goals, recipes, trained
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.jobs.settings import TrainSettings
from bert_tf.jobs.sources import SAMPLE_NOTE, DataSource, ModelSource, find_data, find_model
from bert_tf.jobs.trained import Found
from bert_tf.profiling.timing.wall_clock import DATA, WALL
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import DEV, TEST, TRAIN, Example, Task
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

CUSTOM_FILES = ("train_file", "dev_file", "test_file")
# What an evaluation of one's own data takes from the run.
CUSTOM_COLUMNS = tuple(f.name for f in dataclasses.fields(CustomSettings) if f.name not in (*CUSTOM_FILES, "labels"))

_OF_TEXTS = ("max_seq_length", "do_lower_case", "long_text")
_ASKED_AFTERWARDS = {"seeds", "target_metric"}
_OF_TRAINING = {field.name for field in dataclasses.fields(TrainSettings)} | {"memory_trace_step", "profile_steps"}


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """Everything that is known before a graph is built.

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
        return Path(self.settings.output.output_dir or "")

    @functools.cached_property
    def results_dir(self) -> Path:
        """Folder of results: that of the checkpoints, or one in it where the model was trained on another task."""
        folder, task = self.output_dir, self.task.name
        trained_on = task if self.settings.actions.do_train else run_folder.trained(folder).get("task_name", task)
        return folder if trained_on == task else folder / task

    @property
    def run_dir(self) -> Path:
        """Folder of the run that is trained or evaluated; the best checkpoint has one of its own in it."""
        if self.settings.actions.do_train:
            return self.output_dir
        folder = self.weights.folder
        return folder.parent if folder.name == best.BEST else folder

    @functools.cached_property
    def target(self) -> Target | None:
        """What --target_metric wants, see `goals.target`."""
        return goals.target(self.settings.train, self.task)

    @functools.cached_property
    def best_by(self) -> str | None:
        """The result that tells the best checkpoint, see `goals.best_by`."""
        return goals.best_by(self.settings.train, self.task)

    @property
    def train_split(self) -> str:
        """Name of the split to train on."""
        return self.splits[TRAIN][0]

    @property
    def least_schedule(self) -> Schedule:
        """How long to train where each example is one row of features; it has one at least."""
        return self.schedule(len(self.examples[self.train_split]))

    def schedule(self, rows: int) -> Schedule:
        """Returns how long to train on so many rows."""
        train = self.settings.train
        return Schedule(rows, train.train_batch_size, train.num_train_epochs, train.num_train_steps)

    def digest(self, split: str) -> str:
        """Returns the sha256 of the examples of a split."""
        if split not in self._digests:
            self._digests[split] = examples_digest(self.examples[split])
        return self._digests[split]

    @functools.cached_property
    def _digests(self) -> dict[str, str]:
        return {}


@WALL.span(DATA)
def prepare(settings: FineTuneConfig, machine: Machine, *, environment: Mapping[str, str], task: Task | None = None) -> Job:
    """Reads what the settings name, and says where each part came from.

    Args:
      settings: what to do.
      machine: that computes.
      environment: names folders of data and model.
      task: in the place of the task of the settings.

    Raises:
      BertError: a file is missing or cannot be used.
    """
    found = None if settings.actions.do_train else trained.find(settings, environment)
    record = run_folder.trained(found.folder) if found else {}
    if found:
        settings = _as_trained(settings, found.checkpoint, record)
    task, data = _task(settings, task, record, environment)
    splits = {purpose: task.splits(data.folder, purpose) for purpose in _purposes(settings)}
    examples = {split: task.examples(data.folder, split) for names in splits.values() for split in names}
    source = find_model(settings.model, environment=environment)
    settings, chosen = recipes.apply(settings, default_checkpoint=source.is_default, sample_data=data.is_sample)
    _log_origins(settings, task, data, source, chosen)
    weights = _weights(settings, source, found, chosen)
    read = (weights.max_seq_length, weights.lower_case, weights.long_text)
    job = Job(settings.replaced(dict(zip(_OF_TEXTS, read))), task, data, source, weights, splits, examples, machine)
    if job.results_dir != job.output_dir:
        logging.warning("the model was not trained on %s: results go to %s", task.name, job.results_dir)
    return job


def _task(
    settings: FineTuneConfig, given: Task | None, record: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[Task, DataSource]:
    if given is None:
        task = get_task(settings.data.task_name or "", settings.custom, record.get("labels"))
        return task, find_data(task, settings.data.data_dir, environment=environment)
    folder = settings.data.data_dir
    return given, DataSource(Path(folder or ""), "the task", has_folder=folder is not None)


def _weights(settings: FineTuneConfig, source: ModelSource, found: Found | None, chosen: Collection[str]) -> Trained:
    """Returns the weights; where nothing is trained, texts are read as in their training unless something else is said."""
    said = settings.given | set(chosen) if found else set(_OF_TEXTS)
    of_texts = {name: getattr(settings.data, name) for name in _OF_TEXTS if name in said}
    given = Given(str(source.config), str(source.vocabulary), **of_texts)
    return described(found.checkpoint, given, found.folder) if found else described(source.checkpoint, given)


def _log_origins(
    settings: FineTuneConfig, task: Task, data: DataSource, source: ModelSource, chosen: Mapping[str, float | str]
) -> None:
    logging.info("task %s, data from %s%s", task.name, data.folder, "" if data.is_sample else f" ({data.origin})")
    if data.is_sample:
        logging.warning("this is the %s", SAMPLE_NOTE)
    logging.info("checkpoint %s (%s)", source.checkpoint, source.origin)
    if chosen:
        values = " ".join(f"--{name}={str(value).lower()}" for name, value in chosen.items())
        logging.info("recipe for the default checkpoint: %s", values)
    named = "--output_dir" if "output_dir" in settings.given else "default"
    logging.info("output to %s (%s)", settings.output.output_dir, named)


def _purposes(settings: FineTuneConfig) -> list[str]:
    """Returns which splits are wanted: those of dev while it trains too."""
    actions = settings.actions
    evaluates = actions.do_eval or (actions.do_train and settings.train.eval_every_n_steps > 0)
    wanted = {TRAIN: actions.do_train, DEV: evaluates, TEST: actions.do_predict}
    return [purpose for purpose, do in wanted.items() if do]


def _as_trained(settings: FineTuneConfig, checkpoint: str, record: Mapping[str, Any]) -> FineTuneConfig:
    """Takes what is left open of data and model from the run of a trained model; how it reads texts `described` finds."""
    idle = settings.given & (_OF_TRAINING - _ASKED_AFTERWARDS)
    if idle:
        logging.warning("nothing is trained, so these change nothing: %s", ", ".join(f"--{name}" for name in sorted(idle)))
    kept = {name: record[name] for name in CUSTOM_COLUMNS if name in record and name not in settings.given}
    if record and not settings.given & {"init_checkpoint", "bert_config_file", "vocab_file"}:
        kept["init_checkpoint"] = checkpoint
    return settings.replaced(kept)
