"""A classification job before its graph is built: settings resolved, files found and read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import logging

from bert_tf.commands import recipes, trained
from bert_tf.commands.classifier_flags import Settings
from bert_tf.commands.sources import SAMPLE_NOTE, DataSource, ModelSource, find_data, find_model
from bert_tf.commands.trained import Trained
from bert_tf.config import BertConfig
from bert_tf.estimator import run_folder
from bert_tf.inputs.pipeline import Schedule
from bert_tf.profiling.timing.wall_clock import DATA, WALL
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import DEV, TEST, TRAIN, Example, Task
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tokenization.vocabulary import Vocabulary

CUSTOM_FILES = ("train_file", "dev_file", "test_file")
_WHILE_TRAINING = {"fit_memory", "check_memory", "memory_trace_step", "profile_steps"}
# What an evaluation of one's own data takes from the run.
CUSTOM_COLUMNS = tuple(f.name for f in dataclasses.fields(CustomSettings) if f.name not in (*CUSTOM_FILES, "labels"))


class Job(NamedTuple):
    """Everything that is known before a graph is built."""

    settings: Settings
    task: Task
    data: DataSource
    source: ModelSource
    config: BertConfig
    vocabulary: Vocabulary
    splits: Mapping[str, tuple[str, ...]]  # of each purpose that is wanted
    examples: Mapping[str, Sequence[Example]]  # of each split
    machine: Machine
    trained: Trained | None = None  # what is evaluated, where nothing is trained

    @property
    def output_dir(self) -> Path:
        """Folder of checkpoints."""
        return Path(self.settings.job.output_dir)

    @property
    def results_dir(self) -> Path:
        """Folder of results."""
        return results_dir(self.settings)

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


def results_dir(settings: Settings) -> Path:
    """Returns the folder of results: that of the checkpoints, or one in it where the model was trained on another task."""
    folder, task = Path(settings.job.output_dir), canonical_name(settings.data.task_name)
    trained_on = task if settings.job.do_train else run_folder.trained(folder).get("task_name", task)
    return folder if trained_on == task else folder / task


@WALL.span(DATA)
def prepare(settings: Settings, machine: Machine, *, environment: Mapping[str, str]) -> Job:
    """Reads what the settings name, and says where each part came from.

    Raises:
      BertError: a file is missing or cannot be used.
    """
    found = None if settings.job.do_train else trained.find(settings)
    record = run_folder.trained(found.folder) if found else {}
    if found:
        settings = _as_trained(settings, found, record)
    task = get_task(settings.data.task_name, settings.custom, record.get("labels"))
    data = find_data(task, settings.data.data_dir, environment=environment)
    evaluates = settings.job.do_eval or (settings.job.do_train and settings.train.eval_every_n_steps > 0)
    wanted = {TRAIN: settings.job.do_train, DEV: evaluates, TEST: settings.job.do_predict}
    splits = {purpose: task.splits(data.folder, purpose) for purpose, do in wanted.items() if do}
    examples = {split: task.examples(data.folder, split) for names in splits.values() for split in names}
    source = find_model(settings.model, environment=environment)
    settings, chosen = recipes.apply(settings, default_checkpoint=source.is_default, sample_data=data.is_sample)
    logging.info("task %s, data from %s%s", task.name, data.folder, "" if data.is_sample else f" ({data.origin})")
    if data.is_sample:
        logging.warning("this is the %s", SAMPLE_NOTE)
    logging.info("checkpoint %s (%s)", source.checkpoint, source.origin)
    if chosen:
        values = " ".join(f"--{name}={str(value).lower()}" for name, value in chosen.items())
        logging.info("recipe for the default checkpoint: %s", values)
    logging.info("output to %s (%s)", settings.job.output_dir, "--output_dir" if "output_dir" in settings.given else "default")
    config = BertConfig.from_json_file(source.config)
    vocabulary = Vocabulary.from_file(source.vocabulary)
    job = Job(settings, task, data, source, config, vocabulary, splits, examples, machine, found)
    if job.results_dir != job.output_dir:
        logging.warning("the model was not trained on %s: results go to %s", task.name, job.results_dir)
    return job


def _as_trained(settings: Settings, model: Trained, record: Mapping[str, Any]) -> Settings:
    """Takes what the command line leaves open from the run of a trained model."""
    of_training = {field.name for field in dataclasses.fields(settings.train)} | _WHILE_TRAINING
    idle = settings.given & (of_training - {"target_metric"})  # may be asked afterwards
    if idle:
        logging.warning("nothing is trained, so these change nothing: %s", ", ".join(f"--{name}" for name in sorted(idle)))
    names = {"max_seq_length", "do_lower_case", "long_text", *CUSTOM_COLUMNS} & record.keys()
    kept = {name: record[name] for name in names - settings.given}
    if record and not settings.given & {"init_checkpoint", "bert_config_file", "vocab_file"}:
        kept["init_checkpoint"] = model.checkpoint
    return recipes.with_values(settings, kept)
