"""One's own tables as a task, for a model that is trained."""

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
    """Returns whether the task custom reads what a model has learned."""
    return registry.reads_own(record["kind"])


def task(record: Mapping[str, Any], columns: Columns, **files: str) -> Task:
    """Returns the task of a model over other files.

    Args:
      record: see `run_folder.trained`; its columns count where none are given.
      columns: given.
      files: as `CustomSettings` calls them.

    Raises:
      FlagError: the record does not say what the labels are, or the model has learned what such files do not hold.
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
