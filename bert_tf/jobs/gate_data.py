"""Labelled examples that verify an export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bert_tf.batch import own_data
from bert_tf.batch.job import LabelledColumns
from bert_tf.errors import DataError
from bert_tf.export.exported import Labelled
from bert_tf.jobs.learned import Learned
from bert_tf.log_form import log
from bert_tf.tasks.base import DEV, Task
from bert_tf.tasks.in_memory import RowsTask
from bert_tf.tasks.tables import usable

_NONE = "labelled examples are required to measure the export; name them by --gate_data"


def examples(model: Learned, given: str | None, find_data: Callable[[Task], str]) -> Labelled:
    """Examples by split or file; `given` is a folder, a file in the layout of dev, or None for the task's folder."""
    task = model.task
    if given is not None and Path(given).is_file():
        split, reader = task.splits("", DEV)[0], _reader(model, given)
        return {given: _labelled(usable(lambda report: reader.stream(given, split, report), given, skip=False), given)}
    if isinstance(task, RowsTask) and given is None:
        nowhere(task)
    folder = given or find_data(task)
    log.info("%s: measured by the files in %s", task.name, folder)
    return {split: _labelled(task.examples(folder, split), split) for split in task.splits(folder, DEV)}


def nowhere(task: Task) -> str:
    """Raises DataError: there is no known folder of the task."""
    raise DataError(_NONE, task.name)


def _reader(model: Learned, file: str) -> Task:
    if isinstance(model.task, RowsTask):
        return own_data.task(model.trained.record, LabelledColumns(), dev_file=file)
    return model.task


def _labelled(found: Sequence[Any], name: str) -> Sequence[Any]:
    if not found or getattr(found[0], "label", None) is None:
        raise DataError("no labelled examples to measure by", name)
    return found
