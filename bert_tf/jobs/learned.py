"""A trained model and its task, by the name of its checkpoint or run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_tf.batch import trained
from bert_tf.batch.job import Given
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.jobs import sources
from bert_tf.tasks import families, registry
from bert_tf.tasks.base import Task
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.in_memory import RowsTask
from bert_tf.tasks.registry import canonical_name, get_task


class Learned(NamedTuple):
    trained: Trained
    task: Task


def find(path: str | os.PathLike[str], task: str | Task | None, given: Given, *, environment: Mapping[str, str]) -> Learned:
    """Finds a trained model by checkpoint or run (best, else newest) and checks it without reading weights.

    `task` is needed if no run record names it; CheckpointError if nothing does.
    """
    prefix = sources.checkpoint_of(path, environment=environment)
    said = _said(task, run_folder.trained(prefix.parent))
    found = trained.load(str(prefix), given, family=None if said is None else said.family)
    learned = said or _recorded(found)
    found.refuse(learned.family)
    return Learned(found, learned)


def _said(task: str | Task | None, record: Mapping[str, Any]) -> Task | None:
    """Returns the given task; None if there is none or its name equals the recorded one."""
    if not isinstance(task, str):
        return task
    return None if canonical_name(task) == record.get("task_name") else get_task(task)


def _recorded(model: Trained) -> Task:
    name = model.record.get("task_name")
    if name is None:
        raise CheckpointError(f"{model.prefix}: no run_config.json beside it says what it learned; give task=... (--task_name)")
    return RowsTask(families.of_record(model.record)) if name == CUSTOM else _registered(model, name)


def _registered(model: Trained, name: str) -> Task:
    try:
        return registry.of_record(model.record)
    except FlagError as error:
        raise CheckpointError(
            f"{model.prefix}: trained on {name}, which is no task here; give task=..., or register it (tasks.registry.register)"
        ) from error
