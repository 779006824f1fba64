"""Custom tables as a task for a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.batch.job import Columns
from bert_tf.errors import FlagError
from bert_tf.head_spec import PRETRAINING
from bert_tf.tasks import registry
from bert_tf.tasks.base import Task
from bert_tf.tasks.custom import NAME
from bert_tf.tasks.pretraining.family import NO_LABELS
from bert_tf.tasks.settings import KEPT, of_values

_OF_FILES = ("file_format",)  # the name of each file says it


def can_be(record: Mapping[str, Any]) -> bool:
    return registry.reads_own(record["kind"])


def task(record: Mapping[str, Any], columns: Columns, **files: str) -> Task:
    """Task of a trained model over other files, with the record's columns unless overridden.

    Raises FlagError if the record has no labels, or custom tables cannot hold the model's task.
    """
    if "kind" not in record:
        raise FlagError(f"task {NAME}: kind and names of its labels are in the run_config.json of a run, and there is none")
    if record["kind"] == PRETRAINING:
        raise FlagError(f"task {NAME}: {NO_LABELS}")
    if not can_be(record):
        raise FlagError(
            f"task {NAME} has no files of {record['kind']}, which the model has learned; name the task of its training"
        )
    given = columns.given()
    registry.refuse_foreign(NAME, given, record["kind"])
    kept: dict[str, Any] = {name: record[name] for name in KEPT if name in record and name not in _OF_FILES}
    if "text_a" in given:
        kept["text_b"] = None
    return registry.get_task(NAME, of_values({**kept, **given, **files, "problem": record["kind"]}), record["labels"])
