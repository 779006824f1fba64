"""Settings of all tasks in groups: custom data, and those of families."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf import extension
from bert_tf.settings import group, replaced, setting, setting_names
from bert_tf.tasks.custom import NAME, CustomSettings


@dataclasses.dataclass(frozen=True)
class SimilaritySettings:
    """Scale of scores, and the temperature for pairs without scores."""

    highest_score: float = setting(1.0, "highest score of a pair with --problem=similarity; 0 is the lowest", lowest=1e-3)
    temperature: float = setting(0.05, "temperature of the loss with --problem=contrastive", lowest=1e-3)


ExtensionTaskSettings = dataclasses.make_dataclass(
    "ExtensionTaskSettings", [(name, Any, group(one.of_tasks)) for name, one in extension.found().items()], frozen=True
)
ExtensionTaskSettings.__module__ = __name__  # for pickles; Python 3.11 and older name another


@dataclasses.dataclass(frozen=True)
class TaskSettings:
    """Settings of tasks; `registry.settings_of_task` lists those a task accepts."""

    custom: CustomSettings = group(CustomSettings, f"Your own data (--task_name={NAME})")
    similarity: SimilaritySettings = group(
        SimilaritySettings, "Vectors (--task_name=custom --problem=similarity or contrastive)"
    )
    extensions: Any = group(ExtensionTaskSettings)


GROUPS: Mapping[str, type] = {
    "custom": CustomSettings,
    "similarity": SimilaritySettings,
}
NAMES = setting_names(TaskSettings)
LISTS = setting_names(TaskSettings, paths=True)
PATHS = (*setting_names(TaskSettings, path=True), *LISTS)
KEPT = setting_names(TaskSettings, path=False, paths=False, of_one_run=False)  # of its training, a model is used with those


def of_record(record: Mapping[str, Any]) -> TaskSettings:
    """Returns the settings that a model was trained with; without files."""
    return of_values({name: record[name] for name in KEPT if name in record})


def of_values(values: Mapping[str, Any]) -> TaskSettings:
    """Groups settings by name, ignoring other names."""
    return replaced(TaskSettings(), values)
