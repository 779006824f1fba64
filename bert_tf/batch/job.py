"""Settings that batch operations share, and job files of YAML or JSON, whose keys are settings."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from bert_tf import extension
from bert_tf.errors import FlagError
from bert_tf.features.long_text import CUTS
from bert_tf.io import documents, files
from bert_tf.io.documents import DocumentError
from bert_tf.settings import (
    OfExtensions,
    annotation,
    checked,
    group,
    read_settings,
    same,
    setting,
    setting_names,
    settings_of,
    unknown_setting,
    values_of,
)
from bert_tf.tasks import names, tables
from bert_tf.tasks.settings import CustomSettings

Entry = Callable[[Any], Any]  # reads an entry of a list in a job file

T = TypeVar("T")

_COLUMNS = setting_names(CustomSettings, is_column=True)
_FORMATS = (tables.LINES, *names.INPUT_FORMATS)
# `Columns.file_format` of files of texts, see `texts.TextInputs`.
TEXT_FILES = {"choices": _FORMATS, "help": f"{', '.join(_FORMATS)}; default: by suffix, or text"}
_AS_TRAINED = "; default: as trained"


@dataclasses.dataclass(frozen=True)
class _Overrides:
    """Settings that replace those of the training unless they are None."""

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in values_of(self).items() if value is not None}


@functools.cache
def _of_extensions(more: str, **attributes: Any) -> Any:
    """A class of those settings of extensions' tasks that have such attributes."""
    kinds = [entry.of_tasks for entry in extension.installed().values()]
    return dataclasses.make_dataclass(
        "ExtensionOverrides",
        [
            (field.name, f"{annotation(field)} | None", same(kind, field.name, default=None, more=more))
            for kind in kinds
            for field in dataclasses.fields(kind)
            if field.name in setting_names(kind, **attributes)
        ],
        bases=(OfExtensions, _Overrides),
        namespace={"made_by": functools.partial(_of_extensions, more, **attributes)},
        frozen=True,
    )


extension_columns = functools.partial(_of_extensions, "", column_of="rows")
_extension_labels = functools.partial(_of_extensions, "", column_of="labels")
_extension_rules = functools.partial(_of_extensions, _AS_TRAINED, decodes=True)


@dataclasses.dataclass(frozen=True)
class Columns(_Overrides):
    """Column layout of a file, see `tasks.settings.CustomSettings` and the family's settings."""

    TITLE: ClassVar[str] = "Columns of the data"

    text_a: str | None = same(CustomSettings, "text_a")
    text_b: str | None = same(CustomSettings, "text_b")
    id_column: str | None = same(CustomSettings, "id_column")
    file_format: str | None = same(CustomSettings, "file_format")
    has_header: bool | None = same(CustomSettings, "has_header")
    extensions: Any = group(extension_columns)


@dataclasses.dataclass(frozen=True)
class LabelledColumns(Columns):
    """Column layout of a table with labels."""

    label_column: str | None = same(CustomSettings, "label_column", default=None)
    label_separator: str | None = same(CustomSettings, "label_separator", default=None)
    labels_of_extensions: Any = group(_extension_labels)


def as_trained() -> dict[str, Any]:
    """Help of columns where those of the training are the default, for `settings.group`."""
    rows = [row for row in settings_of(LabelledColumns) if row.name != "file_format"]
    return {row.name: {"help": row.help.partition("; default:")[0] + _AS_TRAINED} for row in rows}


@dataclasses.dataclass(frozen=True)
class Rules(_Overrides):
    """How answers are decoded, see `tasks.families.with_rules`; None keeps the training's setting."""

    TITLE: ClassVar[str] = "Answers, tags and scores"

    extensions: Any = group(_extension_rules)


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    bert_config_file: str | None = setting(None, "model configuration; default: beside the checkpoint")
    vocab_file: str | None = setting(None, "vocabulary of the model; default: beside the checkpoint")


@dataclasses.dataclass(frozen=True)
class TextOverrides:
    """How texts are read, if not as in the training."""

    max_seq_length: int | None = setting(None, "maximum input length in word pieces; default: as trained", lowest=1)
    do_lower_case: bool | None = setting(None, "lower-case the text; default: as trained")
    long_text: str | None = setting(None, f"longer texts: {', '.join(CUTS)}; default: as trained", choices=tuple(CUTS))


@dataclasses.dataclass(frozen=True)
class ModelOverrides(TextOverrides, ModelFiles):
    """Settings that override those recorded in the checkpoint's folder."""

    TITLE: ClassVar[str] = "Model and its texts"


def with_job(kind: type, values: Mapping[str, Any], *, lists: Mapping[str, Entry], without: tuple[str, ...]) -> dict[str, Any]:
    """Returns settings by name, with those of the job file that `job` names; a setting of `values` overrides a key.

    `lists` has keys that are no settings but lists, `without` settings that are no keys.
    """
    path = values.get("job")
    return {**_keys(path, kind, lists, without), **values} if path else dict(values)


def _keys(path: str, kind: type, lists: Mapping[str, Entry], without: tuple[str, ...]) -> dict[str, Any]:
    rows = {row.name: row for row in settings_of(kind) if row.name not in ("job", *without)}
    keys = {}
    for key, value in _parsed(path).items():
        if key not in rows and key not in lists:
            raise FlagError(f"{path}: {unknown_setting('key', str(key), [*rows, *lists])}")
        try:
            keys[key] = _several(lists[key], value) if key in lists else checked(rows[key], _as_text(key, value))
        except FlagError as error:
            problem = str(error).removeprefix("flag ").removeprefix("--")
            raise FlagError(f"{path}: {problem}") from error
    return {key: value for key, value in keys.items() if value is not None}


def _parsed(path: str | os.PathLike[str]) -> dict[Any, Any]:
    try:
        values = documents.parse_yaml(documents.read_text(path))
    except OSError as error:
        raise FlagError(f"{path}: cannot read the job: {files.reason(error)}") from error
    except DocumentError as error:
        raise FlagError(f"{error.place(path)}: {error.problem}") from error
    if not isinstance(values, dict):
        raise FlagError(f"{path}: expected a mapping of keys to values (docs/batch_jobs.md)")
    return values


def _several(read_one: Entry, value: Any) -> tuple[Any, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise FlagError("expected a list with an entry")
    return tuple(map(read_one, values))


def read_entry(kind: type[T], value: Any) -> T:
    """Returns an entry of a job file; FlagError for an unknown, missing or unusable key."""
    if not isinstance(value, dict):
        raise FlagError(f"{value!r:.200}: expected a mapping of {', '.join(row.name for row in settings_of(kind))}")
    return read_settings(kind, {str(key): _as_text(key, item) for key, item in value.items()})


def _as_text(key: str, value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number and key in _COLUMNS else value
