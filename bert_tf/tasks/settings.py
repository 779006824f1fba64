"""Settings of all tasks in groups: custom data, and those of families."""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from bert_tf import extension
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.io import files
from bert_tf.settings import group, of_extensions, replaced, setting, setting_names
from bert_tf.tasks.names import INPUT_FORMATS, KINDS

CUSTOM = "custom"


def _problems() -> tuple[str, ...]:
    """Extensions add some."""
    return (*KINDS, *(kind for kind, new in extension.named("kinds").items() if new.problem))


@dataclasses.dataclass(frozen=True)
class CustomSettings:
    """Flags for custom data; the fields are flags.

    A column is a name, or a number counted from 1. A text may be several columns separated by commas, joined with a
    space; if a column has exactly that name, commas included, it is that column.
    """

    train_file: str | None = setting(
        None,
        "training file: TSV (no quoting), CSV, JSON lines or Parquet, by suffix; text also with .gz",
        path=True,
        refuse_missing=files.refuse_missing,
    )
    dev_file: str | None = setting(None, "evaluation file", path=True, refuse_missing=files.refuse_missing)
    test_file: str | None = setting(None, "prediction file; needs no labels", path=True, refuse_missing=files.refuse_missing)
    text_a: str | None = setting(
        None,
        "text column, or several joined by a space: title,body or 1,3; default: text, sentence, text_a (and text_b) or"
        " sentence1 (and sentence2)",
        is_column=True,
    )
    text_b: str | None = setting(None, "column of the second text, if --text_a is given", is_column=True)
    label_column: str = setting("label", "column of the label", is_column=True)
    id_column: str | None = setting(None, "column of row ids for predictions; default: split and line", is_column=True)
    file_format: str | None = setting(None, f"{', '.join(INPUT_FORMATS)}, if the suffix does not tell", choices=INPUT_FORMATS)
    has_header: bool | None = setting(None, "the first line names the columns; default: true unless --text_a is a number")
    problem: str = setting(
        CLASSIFICATION, lambda: f"kind of problem: {', '.join(_problems())} (docs/tasks.md)", choices=_problems
    )
    labels: str | None = setting(
        None,
        "comma-separated labels in class order, those with a comma in quotes (F1 is of the second of two); default: those of"
        " training",
        of_one_run=True,
    )
    label_separator: str = setting(",", "separator of labels in a multi_label cell; JSON may have a list")
    skip_bad_rows: bool = setting(False, "skip unusable rows (any task) instead of listing and rejecting them", of_one_run=True)


FILES = setting_names(CustomSettings, path=True)
SKIP = "skip_bad_rows"


def listed_labels(settings: CustomSettings) -> list[str]:
    """Returns the labels of --labels, a row of CSV, empty if not set; raises `FlagError` for duplicates or too few."""
    if settings.labels is None:
        return []
    try:
        listed = [name.strip() for row in csv.reader([settings.labels], skipinitialspace=True, strict=True) for name in row]
    except csv.Error as error:
        if len(settings.labels.splitlines()) > 1:
            raise FlagError("--labels: several lines; write the labels in one, with commas between them") from error
        remedy = "put a label that holds a comma or a quote in quotes, and double the quote"
        raise FlagError(f"--labels={settings.labels}: {error}; {remedy}") from error
    if settings.problem == REGRESSION:
        raise FlagError(f"--labels: with --problem={REGRESSION} labels are numbers, none are listed")
    if not listed or "" in listed or len(set(listed)) < len(listed):
        raise FlagError(f"--labels={settings.labels}: an empty or repeated name")
    if settings.problem == CLASSIFICATION and len(listed) < 2:
        raise FlagError(f"--labels={settings.labels}: give at least two, with commas")
    return listed


@dataclasses.dataclass(frozen=True)
class TaskSettings:
    """Settings of tasks; `registry.settings_of_task` lists those a task accepts."""

    custom: CustomSettings = group(CustomSettings, f"Your own data (--task_name={CUSTOM})")
    extensions: Any = group(functools.partial(of_extensions, "of_tasks"))
    needs_ids: bool = True  # whether a file to predict must have --id_column: false if it is only that of the training
    texts: int | None = None  # of a row that a trained model reads, 1 or 2; None if unknown or mixed


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
def unlabelled_names() -> tuple[str, ...]:
    """Settings of tasks without labels, which have a command of their own."""
    owners = [entry for entry in extension.installed().values() if any(task.command for task in entry.tasks.values())]
    return setting_names(*(entry.of_tasks for entry in owners))


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
