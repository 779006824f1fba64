"""Prepares a fine-tuning job before its graph is built: resolves settings, finds and reads files."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.trained import Trained, described
from bert_tf.config import BertConfig
from bert_tf.errors import BadRowsError
from bert_tf.estimator import run_folder
from bert_tf.head_spec import PRETRAINING
from bert_tf.jobs import recipes, trained
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.jobs.job import Job
from bert_tf.jobs.settings import TrainSettings
from bert_tf.jobs.sources import SAMPLE_NOTE, DataSource, ModelSource, find_data, find_model
from bert_tf.jobs.trained import Found
from bert_tf.log_form import log
from bert_tf.profiling.timing.wall_clock import DATA, WALL
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import DEV, TEST, TRAIN, Example, Task
from bert_tf.tasks.custom import SKIP
from bert_tf.tasks.on_disk import Opening, Unopened
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import KEPT

_OF_TEXTS = ("max_seq_length", "do_lower_case", "long_text")
_LENGTHS = frozenset(("max_seq_length", "phase2_max_seq_length"))
_ASKED_AFTERWARDS = {"seeds", "target_metric"}
_OF_TRAINING = {field.name for field in dataclasses.fields(TrainSettings)} | {"memory_trace_step", "profile_steps"}


@WALL.span(DATA)
def prepare(settings: FineTuneConfig, machine: Machine, *, environment: Mapping[str, str], task: Task | None = None) -> Job:
    """Reads the files and logs where each part came from; `task` replaces the task of the settings."""
    found = None if settings.actions.do_train else trained.find(settings, environment, task)
    record = run_folder.trained(found.folder) if found else {}
    if found:
        settings = _as_trained(settings, found.checkpoint, record)
    task, data = _task(settings, task, record, environment)
    splits = {purpose: task.splits(data.folder, purpose) for purpose in _purposes(settings)}
    try:
        found_examples = {split: task.examples(data.folder, split) for names in splits.values() for split in names}
    except BadRowsError as error:
        *others, last = error.problems
        raise BadRowsError([*others, f"{last}; correct the file, or add --{SKIP}"]) from error
    learns_texts = any(isinstance(of_split, Unopened) for of_split in found_examples.values())
    source = find_model(settings.model, environment=environment, may_be_new=learns_texts and settings.actions.do_train)
    settings, chosen = recipes.apply(settings, task.family, default_checkpoint=source.is_default, sample_data=data.is_sample)
    settings = settings if found else _within_positions(settings, source)
    _log_origins(settings, task, data, source, chosen)
    weights = _weights(settings, source, found, chosen)
    read = (weights.max_seq_length, weights.lower_case, weights.long_text)
    settings = settings.replaced(dict(zip(_OF_TEXTS, read)))
    examples = {split: _opened(of_split, settings, weights) for split, of_split in found_examples.items()}
    job = Job(settings, task, data, source, weights, splits, examples, machine)
    if job.results_dir != job.output_dir:
        log.warning("the model was not trained on %s: results go to %s", task.name, job.results_dir)
    return job


def _task(
    settings: FineTuneConfig, given: Task | None, record: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[Task, DataSource]:
    if given is None:
        task = get_task(settings.data.task_name or "", settings.of_task, record.get("labels"))
        return task, find_data(task, settings.data.data_dir, environment=environment)
    folder = settings.data.data_dir
    return given, DataSource(Path(folder or ""), "the task", has_folder=folder is not None, has_command=False)


def _weights(settings: FineTuneConfig, source: ModelSource, found: Found | None, chosen: Collection[str]) -> Trained:
    """Returns the weights; without training, texts are read as in their training unless settings say otherwise."""
    said = settings.given | set(chosen) if found else set(_OF_TEXTS)
    of_texts = {name: getattr(settings.data, name) for name in _OF_TEXTS if name in said}
    given = ModelOverrides(str(source.config), str(source.vocabulary), **of_texts)
    if found:
        return described(found.checkpoint, given, found.folder)
    return described(source.checkpoint, given, source.config.parent if source.from_scratch else None)


def _within_positions(settings: FineTuneConfig, source: ModelSource) -> FineTuneConfig:
    """Limits rows to the model's positions unless a flag sets their length."""
    most = BertConfig.from_json_file(source.config).max_position_embeddings
    lengths = {**dataclasses.asdict(settings.data), **dataclasses.asdict(settings.of_task.pretraining)}
    shorter = {name: most for name in _LENGTHS - settings.given if lengths[name] > most}
    if "max_seq_length" in shorter:
        log.info("--max_seq_length=%d: the model has no more positions", most)
    return settings.replaced(shorter)


def _opened(examples: Sequence[Example] | Unopened, settings: FineTuneConfig, weights: Trained) -> Sequence[Example]:
    if not isinstance(examples, Unopened):
        return examples
    output, eval_batch = settings.output.folder, settings.inference.eval_batch_size
    return examples.opened(Opening(weights.tokenizer, settings.data.max_seq_length, output, eval_batch))


def _log_origins(
    settings: FineTuneConfig, task: Task, data: DataSource, source: ModelSource, chosen: Mapping[str, float | str]
) -> None:
    place = data.folder if data.has_folder else "files that are named"
    log.info("task %s, data from %s%s", task.name, place, "" if data.is_sample else f" ({data.origin})")
    if data.is_sample:
        log.warning("this is the %s", SAMPLE_NOTE)
    log.info("checkpoint %s (%s)", source.checkpoint or "none", source.origin)
    if chosen:
        log.info("recipe for the default checkpoint: %s", _flags(chosen))
    own = source.checkpoint and not source.is_default and run_folder.trained(Path(source.checkpoint).parent)
    dropped = recipes.dropped(settings) if own and own.get("kind") == PRETRAINING else {}
    if dropped:
        log.info("the recipe for the default checkpoint is not applied to your own; if it is as small, add %s", _flags(dropped))
    named = "--output_dir" if "output_dir" in settings.given else "default"
    log.info("output to %s (%s)", settings.output.output_dir, named)


def _flags(values: Mapping[str, float | str]) -> str:
    return " ".join(f"--{name}={str(value).lower()}" for name, value in values.items())


def _purposes(settings: FineTuneConfig) -> list[str]:
    """Purposes to read; dev also if it is evaluated during training."""
    actions = settings.actions
    evaluates = actions.do_eval or (actions.do_train and settings.train.eval_every_n_steps > 0)
    wanted = {TRAIN: actions.do_train, DEV: evaluates, TEST: actions.do_predict}
    return [purpose for purpose, do in wanted.items() if do]


def _as_trained(settings: FineTuneConfig, checkpoint: str, record: Mapping[str, Any]) -> FineTuneConfig:
    """Fills in data and model settings from the run of a trained model; `described` finds how it reads texts."""
    idle = settings.given & (_OF_TRAINING - _ASKED_AFTERWARDS)
    if idle:
        log.warning("nothing is trained, so these change nothing: %s", ", ".join(f"--{name}" for name in sorted(idle)))
    kept = {name: record[name] for name in KEPT if name in record and name not in settings.given}
    if record and not settings.given & {"init_checkpoint", "bert_config_file", "vocab_file"}:
        kept["init_checkpoint"] = checkpoint
    return settings.replaced(kept)
