"""Trained models of every family, with random weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bert_tf.extensions.export.formats import ExportOptions
from bert_tf.extensions.export.job import ExportJob
from bert_tf.settings import read_settings
from bert_tf.tasks import families
from bert_tf.tasks.rows_task import RowsTask
from tests.extensions.engines.models import trained

RECORDS = {
    "classification": {"labels": ["no", "yes", "maybe"]},
    "regression": {"labels": []},
    "multi_label": {"labels": ["a", "b", "c", "d"]},
    "choice": {"labels": []},
    "tags": {"labels": ["O", "B-PER", "I-PER"]},
    "span": {"labels": []},
    "similarity": {"labels": [], "highest_score": 5.0},
    "contrastive": {"labels": [], "highest_score": 5.0, "temperature": 0.05},
}


def exported(
    folder: Path,
    kind: str = "classification",
    *,
    config: dict[str, object] | None = None,
    record: dict[str, object] | None = None,
    **options: object,
) -> ExportJob:
    """Writes a checkpoint, and returns it as it is exported; `record` replaces that of the kind."""
    task = RowsTask(families.of_record({"kind": kind, **(record or RECORDS[kind])}))
    model = dataclasses.replace(trained(folder, task.family.head, **(config or {})), record=task.family.record())
    return ExportJob(model, task, model.step, read_settings(ExportOptions, options))
