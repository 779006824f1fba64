"""Loads trained models from folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from bert_tf.batch.job import Given
from bert_tf.jobs import batch_machine, learned, machine_settings, sources
from bert_tf.jobs.batch_settings import MODEL, RULES
from bert_tf.library.keywords import takes
from bert_tf.library.model import Model
from bert_tf.settings import MOST_EXAMPLES, Setting, named
from bert_tf.tasks.base import Task
from bert_tf.tasks.families import with_rules
from bert_tf.tasks.in_memory import RowsTask

_OF_MODEL = frozenset(row.name for row in MODEL)
_RULES = frozenset(row.name for row in RULES)
_BATCH_SIZE = Setting(
    "batch_size", int, None, "rows at a time on each device; else by length, and a GPU's memory", 1, highest=MOST_EXAMPLES
)


@takes((*MODEL, *RULES, *machine_settings.SETTINGS))
def load(
    path: str | os.PathLike[str],
    *,
    task: str | Task | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    batch_size: int | None = None,
    **settings: Any,
) -> Model:
    """Returns a trained model; its weights are loaded lazily.

    Args:
      path: a run folder (its best or newest checkpoint), or a checkpoint.
      task: the learned task, if no run record names it.
      data_dir: folder of the task's files for `Model.evaluate`; by default as the command finds it.
      batch_size: rows per batch on each device; None to choose it by their lengths.
      **settings: model settings such as `max_seq_length`, decoding options such as `n_best_size`, `engine`, `precision`
        and device settings, by the flag names of `python -m bert_tf predict`.

    Raises:
      CheckpointError: there is no trained model, a file is missing or damaged, or the task is unknown.
      FlagError: a setting is unknown or invalid.
    """
    given = named((*MODEL, *RULES, _BATCH_SIZE, *machine_settings.SETTINGS), {"batch_size": batch_size, **settings})
    batch_size = given.pop(_BATCH_SIZE.name, None)
    of_model = {name: given.pop(name) for name in _OF_MODEL & given.keys()}
    rules = {name: given.pop(name) for name in _RULES & given.keys()}
    found = learned.find(path, task, Given(**of_model), environment=os.environ)
    folder = None if data_dir is None else os.fspath(data_dir)
    inference = batch_machine.inference(machine_settings.configured(**given), batch_size, environment=os.environ)
    family = with_rules(found.task.family.as_trained(found.trained.record), rules)
    return Model(found.trained, found.task, inference, find_data=_finder(folder), family=family)


def _finder(data_dir: str | None) -> Callable[[Task], str]:
    def find(task: Task) -> str:
        if isinstance(task, RowsTask):
            return ""
        return str(sources.find_data(task, data_dir, environment=os.environ).folder)

    return find
