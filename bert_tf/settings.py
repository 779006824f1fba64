"""Settings as fields of frozen dataclasses: name, type, default, help, choices and bounds of each, declared once.

Flags, --help and the keyword arguments of the library are made of them.
"""

from __future__ import annotations

import dataclasses
import errno
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from bert_tf import files
from bert_tf.documents import LARGEST_SETTING
from bert_tf.errors import FlagError, unknown_name

T = TypeVar("T")

_KINDS: Mapping[str, type] = {"bool": bool, "float": float, "int": int, "str": str}
MOST_EXAMPLES = 1 << 17  # of a batch; twice the largest that BERT was pretrained with (You et al., 2019)
_DECLARED = "setting"  # key of a field's metadata


class Setting(NamedTuple):
    """One setting.

    A text may not be empty, unless the setting says so: `--init_checkpoint=$UNSET` is a mistake, not the default.

    Attributes:
      name: of the field, the flag and the keyword argument.
      kind: bool, int, float or str.
      default: where nothing is given; only a setting whose default is None may be None.
      help: what --help says.
      lowest: bound of a number.
      choices: of a text; empty for any.
      may_be_empty: whether a text may be.
      highest: bound of a number.
    """

    name: str
    kind: type
    default: Any
    help: str
    lowest: float | None = None
    choices: tuple[str, ...] = ()
    may_be_empty: bool = False
    highest: float = LARGEST_SETTING


def setting(
    default: Any,
    help: str,  # noqa: A002  (what it is called everywhere)
    *,
    lowest: float | None = None,
    highest: float = LARGEST_SETTING,
    choices: tuple[str, ...] = (),
) -> Any:
    """Returns the field of a dataclass that is a setting, see `Setting`; its annotation says which kind, as `int | None`.

    Args:
      default: where nothing is given.
      help: what --help says.
      lowest: bound of a number.
      highest: bound of a number.
      choices: of a text; empty for any.
    """
    declared = {"help": help, "lowest": lowest, "highest": highest, "choices": choices}
    return dataclasses.field(default=default, metadata={_DECLARED: declared})


def settings_of(*groups: type) -> Iterator[Setting]:
    """Yields the settings that dataclasses declare, in their order."""
    for group in groups:
        for field in dataclasses.fields(group):
            if _DECLARED in field.metadata:
                kind = _KINDS[str(field.type).partition(" ")[0]]
                yield Setting(field.name, kind, field.default, **field.metadata[_DECLARED])


def check(row: Setting, value: object) -> None:
    """Refuses an empty text, a text that is none of the choices, and a number before something of that size is made.

    Args:
      row: the setting.
      value: of the setting.

    Raises:
      FlagError: it is one of these.
    """
    if value == "" and not row.may_be_empty:
        raise left_empty(row.name)
    if isinstance(value, str):
        refuse_unusable_text(f"--{row.name}", value)
    if row.choices and value not in (None, *row.choices):
        raise FlagError(f"--{row.name}: {unknown_name('value', str(value), row.choices)}")
    if isinstance(value, (int, float)) and not abs(value) <= row.highest:  # nan compares as false
        raise FlagError(f"flag --{row.name}={value}: not a number up to {row.highest}")


def refuse_unusable_text(name: str, text: str) -> None:
    """Refuses what no file can be named by, and no text of a file holds.

    Args:
      name: of the setting.
      text: its value.

    Raises:
      FlagError: a NUL, or half a character.
    """
    try:
        text.encode("utf-8", "surrogateescape")  # names of files may hold any byte
    except UnicodeEncodeError as error:
        raise FlagError(f"{name}={text!a:.80}: half a character, {text[error.start]!a}") from error
    if "\0" in text:
        raise FlagError(f"{name}={text!r:.80}: holds a NUL character")


def path_of(name: str, value: object) -> str:
    """Returns a path that a program gives as a text.

    Args:
      name: of the argument.
      value: of it.

    Raises:
      FlagError: it is no path, is empty, or no file can have it.
    """
    try:
        text = _text(value)
    except TypeError as error:
        raise FlagError(f"{name}={value!r:.80}: expected a path, as a text or a pathlib.Path") from error
    if not text:
        raise FlagError(f"{name} is empty: give a path")
    refuse_unusable_text(name, text)
    for part in text.split(","):  # some take several in one text
        try:
            os.stat(part)
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):  # others are of those who open it
                raise FlagError(f"{name}={part!r:.80}: {files.reason(error)}") from error
    return text


def left_empty(name: str) -> FlagError:
    """Returns the error about a setting without a value."""
    return FlagError(f"--{name} is empty: is a variable of the shell not set? Give a value, or leave the flag out")


def checked(row: Setting, value: object) -> Any:
    """Returns a value that a program gives, as the type of its setting: a path becomes a text, 3 becomes 3.0.

    Args:
      row: the setting.
      value: of the setting.

    Raises:
      FlagError: it has another type, or is out of bounds.
    """
    if value is None and row.default is None:
        return None
    try:
        found = _READ[row.kind](value)
    except TypeError as error:
        expected = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}[row.kind]
        raise FlagError(f"--{row.name}={value!r}: expected {expected}") from error
    if row.lowest is not None and found < row.lowest:
        raise FlagError(f"--{row.name}={value}: expected at least {row.lowest}")
    check(row, found)
    return found


def named(rows: Iterable[Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that a program gives by the names of settings, each as the type of its setting; None is not given.

    Args:
      rows: the settings that there are.
      values: those that are given.

    Raises:
      FlagError: a setting is unknown or has an unusable value; names it as a flag.
    """
    known = {row.name: row for row in rows}
    for name in values:
        if name not in known:
            raise FlagError(unknown_name("setting", name, known))
    read = {name: checked(known[name], value) for name, value in values.items()}
    return {name: value for name, value in read.items() if value is not None}


def fields_of(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Returns a dataclass of those values that are its fields.

    Args:
      kind: the class.
      values: by name.
    """
    names = (field.name for field in dataclasses.fields(cast(Any, kind)))
    return kind(**{name: values[name] for name in names if name in values})


def _bool(value: Any) -> bool:
    if str(value) not in ("True", "False"):  # NumPy's too
        raise TypeError
    return bool(value)


def _number(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def number(value: Any) -> Any:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        return read(value)

    return number


def _text(value: Any) -> str:
    found = os.fspath(value)
    if not isinstance(found, str):  # bytes
        raise TypeError
    return found


_READ: Mapping[type, Callable[[Any], Any]] = {
    bool: _bool,
    int: _number(operator.index),
    float: _number(float),
    str: _text,
}
