"""Settings of all tasks in groups: custom data, and those of families."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from bert_tf.settings import group, of_extensions, replaced, setting_names
from bert_tf.tasks.custom import NAME, CustomSettings


@dataclasses.dataclass(frozen=True)
class TaskSettings:
    """Settings of tasks; `registry.settings_of_task` lists those a task accepts."""

    custom: CustomSettings = group(CustomSettings, f"Your own data (--task_name={NAME})")
    extensions: Any = group(functools.partial(of_extensions, "of_tasks"))


@functools.cache
def all_names() -> tuple[str, ...]:
    return setting_names(TaskSettings)


@functools.cache
def list_names() -> tuple[str, ...]:
    """Settings that are several paths."""
    return setting_names(TaskSettings, paths=True)


@functools.cache
def path_names() -> tuple[str, ...]:
    return (*setting_names(TaskSettings, path=True), *list_names())


@functools.cache
def lasting_names() -> tuple[str, ...]:
    """Settings of its training with which a model is used."""
    return setting_names(TaskSettings, path=False, paths=False, of_one_run=False)


def of_record(record: Mapping[str, Any]) -> TaskSettings:
    """Returns the settings that a model was trained with; without files."""
    return of_values({name: record[name] for name in lasting_names() if name in record})


def of_values(values: Mapping[str, Any]) -> TaskSettings:
    """Groups settings by name, ignoring other names."""
    return replaced(TaskSettings(), values)
