"""Trained models, from folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.batch import trained
from bert_tf.batch.job import Given
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.jobs import batch_machine, machine_settings, sources
from bert_tf.jobs.batch_settings import MODEL, RULES
from bert_tf.library.keywords import takes
from bert_tf.library.model import Model
from bert_tf.settings import Setting, named
from bert_tf.tasks import families, registry
from bert_tf.tasks.base import Task
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.in_memory import RowsTask
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tasks.rules import with_rules

_OF_MODEL = frozenset(row.name for row in MODEL)
_RULES = frozenset(row.name for row in RULES)
_BATCH_SIZE = Setting("batch_size", int, None, "rows at a time on each device; else by length, and a GPU's memory", 1)


@takes((*MODEL, *RULES, *machine_settings.SETTINGS))
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
      batch_size: rows at a time on each device; None for as many as suit their lengths.
      **settings: `max_seq_length` and others of the model, `n_best_size` and other rules of answers, `precision`, and those of
        devices, by the names of the flags of `python -m bert_tf predict`.

    Raises:
      CheckpointError: there is no trained model, a file is missing or damaged, or nothing says what the model has learned.
      FlagError: a setting is unknown or has an unusable value.
    """
    given = named((*MODEL, *RULES, _BATCH_SIZE, *machine_settings.SETTINGS), {"batch_size": batch_size, **settings})
    batch_size = given.pop(_BATCH_SIZE.name, None)
    of_model = {name: given.pop(name) for name in _OF_MODEL & given.keys()}
    rules = {name: given.pop(name) for name in _RULES & given.keys()}
    prefix = sources.checkpoint_of(path, environment=os.environ)
    said = _said(task, run_folder.trained(prefix.parent))
    found = trained.load(str(prefix), Given(**of_model), family=None if said is None else said.family)
    learned = said or _recorded(found)
    found.refuse(learned.family)
    folder = None if data_dir is None else os.fspath(data_dir)
    inference = batch_machine.inference(machine_settings.configured(**given), batch_size, environment=os.environ)
    family = with_rules(learned.family, rules)
    return Model(found, learned, inference, find_data=_finder(folder), family=family)


def _said(task: str | Task | None, record: Mapping[str, Any]) -> Task | None:
    """Returns the task that is given; None where there is none, or where it is the name that the record has too."""
    if not isinstance(task, str):
        return task
    return None if canonical_name(task) == record.get("task_name") else get_task(task)


def _recorded(model: Trained) -> Task:
    """Returns what a model has learned, as the record of its run says."""
    name = model.record.get("task_name")
    if name is None:
        raise CheckpointError(f"{model.prefix}: no run_config.json beside it says what it was trained on; give task=...")
    return RowsTask(families.of_record(model.record)) if name == CUSTOM else _registered(model, name)


def _registered(model: Trained, name: str) -> Task:
    try:
        return registry.of_record(model.record)
    except FlagError as error:
        raise CheckpointError(
            f"{model.prefix}: trained on {name}, which is no task here; give task=..., or register it (tasks.registry.register)"
        ) from error


def _finder(data_dir: str | None) -> Callable[[Task], str]:
    def find(task: Task) -> str:
        if isinstance(task, RowsTask):
            return ""
        return str(sources.find_data(task, data_dir, environment=os.environ).folder)

    return find
