"""Settings of all tasks in groups: custom data, and those of families."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.settings import group, replaced, settings_of
from bert_tf.tasks.custom import FILES, NAME, SKIP, CustomSettings
from bert_tf.tasks.pretraining import settings as pretraining
from bert_tf.tasks.pretraining.settings import PretrainingSettings
from bert_tf.tasks.similarity.settings import SimilaritySettings
from bert_tf.tasks.span.settings import SpanSettings
from bert_tf.tasks.tags.settings import TagSettings


@dataclasses.dataclass(frozen=True)
class TaskSettings:
    """Settings of tasks; `registry.settings_of_task` lists those a task accepts."""

    custom: CustomSettings = group(CustomSettings, f"Your own data (--task_name={NAME})")
    span: SpanSettings = group(SpanSettings, "Extractive question answering (--task_name=SQuAD, SQuAD2)")
    tags: TagSettings = group(TagSettings, "Tags (--task_name=CoNLL2003)")
    similarity: SimilaritySettings = group(
        SimilaritySettings, "Vectors (--task_name=custom --problem=similarity or contrastive)"
    )
    pretraining: PretrainingSettings = group(PretrainingSettings)


GROUPS: Mapping[str, type] = {
    "custom": CustomSettings,
    "span": SpanSettings,
    "tags": TagSettings,
    "similarity": SimilaritySettings,
    "pretraining": PretrainingSettings,
}
NAMES = tuple(row.name for row in settings_of(TaskSettings))
PATHS = (*FILES, "predict_file", *pretraining.PATHS)
KEPT = tuple(name for name in NAMES if name not in (*PATHS, SKIP, "labels"))  # of its training, a model is used with those


def of_record(record: Mapping[str, Any]) -> TaskSettings:
    """Returns the settings that a model was trained with; without files."""
    return of_values({name: record[name] for name in KEPT if name in record})


def of_values(values: Mapping[str, Any]) -> TaskSettings:
    """Groups settings by name, ignoring other names."""
    return replaced(TaskSettings(), values)
