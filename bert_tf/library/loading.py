"""Trained models, from folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from bert_tf.batch import own_data, trained
from bert_tf.batch.job import Columns, Given
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.jobs import batch_machine, machine_settings, sources
from bert_tf.jobs.batch_settings import MODEL
from bert_tf.library.keywords import takes
from bert_tf.library.model import Model
from bert_tf.settings import Setting, named
from bert_tf.tasks import families
from bert_tf.tasks.base import Task
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.in_memory import SentenceTask
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tasks.sentence.example import KINDS
from bert_tf.tasks.settings import of_record

_OF_MODEL = frozenset(row.name for row in MODEL)
_BATCH_SIZE = Setting("batch_size", int, None, "rows at a time; else by length, and a GPU's memory", 1)


@takes((*MODEL, *machine_settings.SETTINGS))
def load(
    path: str | os.PathLike[str],
    *,
    task: str | Task | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    batch_size: int | None = None,
    **settings: Any,
) -> Model:
    """Returns a trained model; its weights are read when it is first asked.

    Args:
      path: folder of a run, for its best checkpoint or the newest; or a checkpoint.
      task: what it has learned, where no record of a run says it.
      data_dir: folder of the task's files, for `Model.evaluate`; else as the command finds it.
      batch_size: rows at a time; None for as many as suit their lengths.
      **settings: `max_seq_length` and others of the model, `precision`, and those of devices, by the names of the flags of
        `python -m bert_tf predict`.

    Raises:
      CheckpointError: there is no trained model, a file is missing or damaged, or nothing says what the model has learned.
      FlagError: a setting is unknown or has an unusable value.
    """
    given = named((*MODEL, _BATCH_SIZE, *machine_settings.SETTINGS), {"batch_size": batch_size, **settings})
    batch_size = given.pop(_BATCH_SIZE.name, None)
    of_model = {name: given.pop(name) for name in _OF_MODEL & given.keys()}
    said = Given(**of_model)
    found = trained.load(str(sources.checkpoint_of(path, environment=os.environ)), said)
    learned = _task(found, task)
    found.refuse(learned.family)
    folder = None if data_dir is None else os.fspath(data_dir)
    inference = batch_machine.inference(machine_settings.configured(**given), batch_size, environment=os.environ)
    return Model(found, learned, inference, find_data=_finder(folder))


def _task(model: Trained, given: str | Task | None) -> Task:
    """Returns what a model has learned: what is given, else what its record says."""
    name = model.record.get("task_name")
    if given is not None and (not isinstance(given, str) or canonical_name(given) != name):
        return get_task(given) if isinstance(given, str) else given
    if name is None:
        raise CheckpointError(f"{model.prefix}: no run_config.json beside it says what it was trained on; give task=...")
    if name != CUSTOM:
        return _registered(model, name)
    family = families.of_record(model.record)
    if family.kind not in KINDS:
        return own_data.task(model.record, Columns())
    return SentenceTask(labels=family.labels, problem=family.kind)


def _registered(model: Trained, name: str) -> Task:
    try:
        return get_task(name, of_record(model.record))
    except FlagError as error:
        raise CheckpointError(
            f"{model.prefix}: trained on {name}, which is no task here; give task=..., or register it (tasks.registry.register)"
        ) from error


def _finder(data_dir: str | None) -> Callable[[Task], str]:
    def find(task: Task) -> str:
        if isinstance(task, SentenceTask):
            return ""
        return str(sources.find_data(task, data_dir, environment=os.environ).folder)

    return find
