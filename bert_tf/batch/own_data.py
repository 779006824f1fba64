"""One's own tables as a task, for a model that is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.batch.job import Columns, LabelledColumns
from bert_tf.errors import FlagError
from bert_tf.tasks.base import Task
from bert_tf.tasks.custom import NAME, PROBLEMS, CustomSettings
from bert_tf.tasks.registry import get_task, refuse_foreign
from bert_tf.tasks.settings import of_record

# Not the format, which the name of each file says.
_KEPT = tuple(field.name for field in dataclasses.fields(LabelledColumns) if field.name != "file_format")


def can_be(record: Mapping[str, Any]) -> bool:
    """Returns whether what a model has learned can be read from tables of one's own."""
    return record["kind"] in PROBLEMS


def task(record: Mapping[str, Any], columns: Columns, **files: str) -> Task:
    """Returns the task of a model over other files.

    Args:
      record: see `run_folder.trained`; its columns count where none are given.
      columns: given.
      files: as `CustomSettings` calls them.

    Raises:
      FlagError: the record does not say what the labels are, or what it has learned has no such columns.
    """
    if "kind" not in record:
        raise FlagError(f"task {NAME}: kind and names of its labels are in the run_config.json of a run, and there is none")
    given = columns.given()
    refuse_foreign(NAME, given, record["kind"])
    kept: dict[str, Any] = {name: record[name] for name in _KEPT if name in record}
    if "text_a" in given:
        kept["text_b"] = None
    settings = CustomSettings(**{**kept, **given, **files, "problem": record["kind"]})
    return get_task(NAME, dataclasses.replace(of_record(record), custom=settings), record["labels"])
