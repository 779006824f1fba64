"""A job as frozen values, from a YAML or JSON file, flags, or both.

The fields of the classes below are the keys of a file; those of `columns` and `model` are merged into the top level.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from bert_tf import documents, files
from bert_tf.documents import LARGEST_SETTING, DocumentError
from bert_tf.errors import FlagError
from bert_tf.features.long_text import CUTS
from bert_tf.settings import Setting, checked, settings_of, unknown_setting
from bert_tf.tasks.settings import GROUPS
from bert_tf.tasks.tables import FORMATS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Read = Callable[[Any], Any]  # of a value; raises ValueError, which says what is expected
T = TypeVar("T", bound="DataclassInstance")


@dataclasses.dataclass(frozen=True)
class Columns:
    """Column layout of a file, see `tasks.custom.CustomSettings` and the family's settings."""

    text_a: str | None = None
    text_b: str | None = None
    id_column: str | None = None
    file_format: str | None = None
    has_header: bool | None = None
    word_column: int | None = None
    raw_text: bool | None = None

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclasses.dataclass(frozen=True)
class LabelledColumns(Columns):
    """Column layout of a table with labels."""

    label_column: str | None = None
    label_separator: str | None = None
    tag_column: int | None = None


@dataclasses.dataclass(frozen=True)
class Rules:
    """How answers are decoded, see `tasks.rules`; None keeps the training's setting."""

    n_best_size: int | None = None
    max_answer_length: int | None = None
    null_score_diff_threshold: float | None = None
    constrained_decoding: bool | None = None
    highest_score: float | None = None

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclasses.dataclass(frozen=True)
class Given:
    """Settings that override those recorded in the checkpoint's folder."""

    bert_config_file: str | None = None
    vocab_file: str | None = None
    max_seq_length: int | None = None
    do_lower_case: bool | None = None
    long_text: str | None = None


@dataclasses.dataclass(frozen=True)
class TaskEntry:
    """Labelled examples: the dev splits of a task, another split, or a file."""

    columns: LabelledColumns
    name: str
    data_dir: str | None = None
    split: str | None = None
    file: str | None = None


@dataclasses.dataclass(frozen=True)
class EvaluateJob:
    """Checkpoints by tasks; for names of checkpoints see `checkpoints.named`."""

    model: Given
    rules: Rules
    checkpoints: tuple[str, ...]
    tasks: tuple[TaskEntry, ...]
    output_dir: str
    eval_batch_size: int | None = None
    zero_shot: bool = False


@dataclasses.dataclass(frozen=True)
class FilePair:
    """An input file and its predictions; `-` is a pipe. For formats see `output_form.of`."""

    input: str
    output: str
    output_format: str | None = None


@dataclasses.dataclass(frozen=True)
class PredictJob:
    """Files to predict with one checkpoint."""

    model: Given
    columns: Columns
    rules: Rules
    checkpoint: str
    files: tuple[FilePair, ...]
    task_name: str | None = None  # for weights without a training record
    output_format: str | None = None  # for files without one
    predict_batch_size: int | None = None
    skip_bad_rows: bool = False
    keep_columns: bool = False


_OF_RULES = frozenset(field.name for field in dataclasses.fields(Rules))
RULES = tuple(row._replace(default=None) for row in settings_of(*GROUPS.values()) if row.name in _OF_RULES)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a job file, YAML or JSON; FlagError if it is unreadable or not a mapping."""
    try:
        values = documents.parse_yaml(documents.read_text(path))
    except OSError as error:
        raise FlagError(f"{path}: cannot read the job: {files.reason(error)}") from error
    except DocumentError as error:
        raise FlagError(f"{error.place(path)}: {error.problem}") from error
    if not isinstance(values, dict):
        raise FlagError(f"{path}: a job is a mapping of keys to values, see docs/batch_jobs.md")
    return values


def make(kind: type[T], values: Mapping[Any, Any]) -> T:
    """Builds a job or entry from values by key; FlagError for an unknown, missing or unusable key."""
    known = _keys(kind)
    for key in values:
        if key not in known:
            raise FlagError(unknown_setting("key", str(key), known))
    return _made(kind, values)


def _keys(kind: type[DataclassInstance]) -> list[str]:
    parts = ((field.name, _part(field)) for field in dataclasses.fields(kind))
    return [key for name, part in parts for key in (_keys(part) if part else [name])]


def _made(kind: type[T], values: Mapping[Any, Any]) -> T:
    made: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        part = _part(field)
        if part:
            made[field.name] = _made(part, values)
        elif field.name in values:
            made[field.name] = _value(field.name, values[field.name])
        elif field.default is dataclasses.MISSING:
            raise FlagError(f"{field.name} is missing")
    return kind(**made)


def _part(field: dataclasses.Field[Any]) -> type[DataclassInstance] | None:
    """Class of a field whose keys are merged into the parent, else None; annotations are strings here."""
    return _PARTS.get(str(field.type))


def _value(key: str, value: Any) -> Any:
    try:
        return _READERS[key](value)
    except ValueError as error:
        raise FlagError(f"{key}: {value!r:.200} is not {error}") from error
    except FlagError as error:  # of an entry
        raise FlagError(f"{key}: {error}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _column(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError("a column, by name or by number; of texts several with commas: title,body")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a whole number from 1 on")
    if value > LARGEST_SETTING:
        raise ValueError(f"a number up to {LARGEST_SETTING}")
    return value


def _place(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < abs(value) <= LARGEST_SETTING:
        raise ValueError("the number of a column, counted from 1, from the end with -1")
    return value


def _of_setting(row: Setting) -> Read:
    least = "" if row.lowest is None else f" from {row.lowest:g} on"

    def read_value(value: Any) -> Any:
        try:
            return checked(row, value)
        except FlagError as error:
            raise ValueError(f"{_EXPECTED[row.kind]}{least}") from error

    return read_value


def _one_of(*names: str) -> Read:
    def read_name(value: Any) -> str:
        if value not in names:
            raise ValueError(f"{', '.join(names[:-1])} or {names[-1]}")
        return str(value)

    return read_name


def _several(read_one: Read) -> Read:
    def read_all(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise ValueError("a list with an entry")
        return tuple(map(read_one, values))

    return read_all


def _task(value: Any) -> TaskEntry:
    return make(TaskEntry, value if isinstance(value, dict) else {"name": value})


def _file(value: Any) -> FilePair:
    if not isinstance(value, dict):
        raise ValueError("a mapping with input and output")
    return make(FilePair, value)


_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number"}
_PARTS: dict[str, type[DataclassInstance]] = {kind.__name__: kind for kind in (Columns, LabelledColumns, Rules, Given)}
_READERS: dict[str, Read] = {
    **dict.fromkeys(("text_a", "text_b", "id_column", "label_column"), _column),
    **dict.fromkeys(("has_header", "do_lower_case", "skip_bad_rows", "keep_columns", "zero_shot", "raw_text"), _switch),
    **dict.fromkeys(("word_column", "tag_column"), _place),
    **dict.fromkeys(("max_seq_length", "eval_batch_size", "predict_batch_size"), _whole),
    **dict.fromkeys(("label_separator", "bert_config_file", "vocab_file", "output_dir", "checkpoint"), _text),
    **dict.fromkeys(("name", "data_dir", "split", "file", "input", "output", "task_name"), _text),
    **dict.fromkeys(("file_format", "output_format"), _one_of(*FORMATS)),
    "long_text": _one_of(*CUTS),
    **{row.name: _of_setting(row) for row in RULES},
    "checkpoints": _several(_text),
    "tasks": _several(_task),
    "files": _several(_file),
}
