"""A classification job before its graph is built: settings resolved, files found and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import logging

from bert_tf.commands import recipes
from bert_tf.commands.flags import Settings
from bert_tf.commands.sources import SAMPLE_NOTE, DataSource, ModelSource, find_data, find_model
from bert_tf.config import BertConfig
from bert_tf.estimator import run, run_folder
from bert_tf.inputs.pipeline import Schedule
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import DEV, TEST, TRAIN, SentenceExample, Task
from bert_tf.tasks.glue import get_task
from bert_tf.tokenization.vocabulary import Vocabulary


class Job(NamedTuple):
    """Everything that is known before a graph is built."""

    settings: Settings
    task: Task
    data: DataSource
    source: ModelSource
    config: BertConfig
    vocabulary: Vocabulary
    examples: dict[str, Sequence[SentenceExample]]
    machine: Machine

    @property
    def output_dir(self) -> Path:
        """Folder of checkpoints and results."""
        return Path(self.settings.job.output_dir)

    @property
    def schedule(self) -> Schedule:
        """How long to train."""
        train = self.settings.train
        return Schedule(len(self.examples[TRAIN]), train.train_batch_size, train.num_train_epochs)


def prepare(settings: Settings, machine: Machine, *, environment: Mapping[str, str]) -> Job:
    """Reads what the settings name, and says where each part came from.

    Raises:
      BertError: a file is missing or cannot be used.
    """
    task = get_task(settings.data.task_name)
    data = find_data(task, settings.data.data_dir, environment=environment)
    wanted = {TRAIN: settings.job.do_train, DEV: settings.job.do_eval, TEST: settings.job.do_predict}
    examples = {split: task.examples(data.folder, split) for split, do in wanted.items() if do}
    if not settings.job.do_train:
        settings = _as_trained(settings)
    source = find_model(settings.model, environment=environment)
    settings, chosen = recipes.apply(settings, default_checkpoint=source.is_default, sample_data=data.is_sample)
    logging.info("task %s, data from %s (%s)", task.name, data.folder, data.origin)
    if data.is_sample:
        logging.warning("this is the %s", SAMPLE_NOTE)
    logging.info("checkpoint %s (%s)", source.checkpoint, source.origin)
    for name, value in chosen.items():
        logging.info("--%s=%s from the recipe for the default checkpoint", name, value)
    logging.info("output to %s (%s)", settings.job.output_dir, "--output_dir" if "output_dir" in settings.given else "default")
    config = BertConfig.from_json_file(source.config)
    return Job(settings, task, data, source, config, Vocabulary.from_file(source.vocabulary), examples, machine)


def _as_trained(settings: Settings) -> Settings:
    """Takes what the command line leaves open from the run that the output folder holds."""
    folder = Path(settings.job.output_dir)
    run.require_checkpoint(folder)
    record = run_folder.load_record(folder)
    if record is None:
        return settings
    trained = record[run_folder.DETERMINING]
    kept = {name: trained[name] for name in ("max_seq_length", "do_lower_case") if name in trained.keys() - settings.given}
    if not settings.given & {"init_checkpoint", "bert_config_file", "vocab_file"}:
        kept["init_checkpoint"] = str(folder)
    return recipes.with_values(settings, kept)
