"""Settings of all tasks in groups: custom data, and those of families."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.settings import fields_of, settings_of
from bert_tf.tasks.custom import FILES, SKIP, CustomSettings
from bert_tf.tasks.pretraining import settings as pretraining
from bert_tf.tasks.pretraining.settings import PretrainingSettings
from bert_tf.tasks.similarity.settings import SimilaritySettings
from bert_tf.tasks.span.settings import SpanSettings
from bert_tf.tasks.tags.settings import TagSettings


@dataclasses.dataclass(frozen=True)
class TaskSettings:
    """Settings of tasks; `registry.settings_of_task` lists those a task accepts."""

    custom: CustomSettings = dataclasses.field(default_factory=CustomSettings)
    span: SpanSettings = dataclasses.field(default_factory=SpanSettings)
    tags: TagSettings = dataclasses.field(default_factory=TagSettings)
    similarity: SimilaritySettings = dataclasses.field(default_factory=SimilaritySettings)
    pretraining: PretrainingSettings = dataclasses.field(default_factory=PretrainingSettings)


GROUPS: Mapping[str, type] = {
    "custom": CustomSettings,
    "span": SpanSettings,
    "tags": TagSettings,
    "similarity": SimilaritySettings,
    "pretraining": PretrainingSettings,
}
NAMES = tuple(row.name for row in settings_of(*GROUPS.values()))
PATHS = (*FILES, "predict_file", *pretraining.PATHS)
KEPT = tuple(name for name in NAMES if name not in (*PATHS, SKIP, "labels"))  # of its training, a model is used with those


def of_record(record: Mapping[str, Any]) -> TaskSettings:
    """Returns the settings that a model was trained with; without files."""
    return of_values({name: record[name] for name in KEPT if name in record})


def of_values(values: Mapping[str, Any]) -> TaskSettings:
    """Groups settings by name, ignoring other names."""
    return TaskSettings(**{group: fields_of(kind, values) for group, kind in GROUPS.items()})
