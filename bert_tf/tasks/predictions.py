"""Predictions as text: TSV, CSV or JSON lines; and as schemas, derived from the type hints of a prediction."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Optional, Union

import numpy as np

from bert_tf.io import documents
from bert_tf.io.text_table import cell
from bert_tf.kinds import Registry
from bert_tf.tasks.names import JSONL, TSV

# Types of a prediction's fields; the service's JSON schema shows their annotations.
Share = Annotated[float, {"minimum": 0, "maximum": 1}]
Place = Optional[int]
Number = Optional[float]
Id = Annotated[str, {"description": "the row's id, else row-0, row-1, ..."}]

PREDICTIONS = Registry[Any]("prediction")  # by kind: their class, or their fields

_JSON = {str: "string", int: "integer", float: "number"}


class Hint(NamedTuple):
    """A field of a prediction."""

    type: Any  # without annotations; for an optional field, the type of its values
    optional: bool
    schema: Mapping[str, Any]  # annotations
    is_property: bool = False


@dataclasses.dataclass(frozen=True)
class TextLayout:
    """One row per example. A tuple is one cell, in JSON a list; None is an empty cell."""

    columns: Sequence[str]
    cells: Callable[[Sequence[Any], Any], Iterable[Sequence[Any]]]  # from examples and predictions to rows
    form: str = TSV  # key of `names.FORMATS`
    separator: str = " "  # between the values of a tuple

    def header(self) -> str:
        return "" if self.form == JSONL else delimited(self.form, [self.columns])

    def rows(self, examples: Sequence[Any], predictions: Any) -> str:
        rows = self.cells(examples, predictions)
        if self.form == JSONL:
            return json_lines(dict(zip(self.columns, row)) for row in rows)
        return delimited(self.form, ([self._text(value) for _, value in zip(self.columns, row)] for row in rows))

    def _text(self, value: Any) -> str:
        return self.separator.join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)


def json_lines(objects: Iterable[Any]) -> str:
    return "".join(documents.to_json(item, ensure_ascii=False) + "\n" for item in objects)


def delimited(form: str, rows: Iterable[Sequence[Any]]) -> str:
    """Returns TSV, in which tabs and line breaks become spaces; else CSV, see `spreadsheets`."""
    if form == TSV:
        return "".join("\t".join(map(cell, row)) + "\n" for row in rows)
    from bert_tf.io import spreadsheets

    return spreadsheets.csv_of(rows)


def joined(parts: Sequence[Any]) -> Any:
    """Joins `Family.predictions`: arrays (by example), lists, named tuples of these, or objects with `joined`."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if hasattr(first, "joined"):
        return type(first).joined(parts)
    if hasattr(first, "_fields"):
        return type(first)(*map(joined, zip(*parts)))
    return [prediction for part in parts for prediction in part]


def names_of(kind: Any) -> list[str]:
    """Returns the fields of a prediction, then its properties; of a named tuple the fields alone."""
    if hasattr(kind, "_fields"):
        return list(kind._fields)
    fields = (field.name for field in dataclasses.fields(kind))
    return [
        *fields,
        *(name for name, member in vars(kind).items() if isinstance(member, property) and not name.startswith("_")),
    ]


def hints_of(kind: Any, **others: Any) -> dict[str, Hint]:
    """Returns the types of the fields and properties of a prediction, by name; `others` override its own."""
    hints = {**typing.get_type_hints(kind, include_extras=True), **others}
    return {name: _hint(hints[name]) if name in hints else _returned(getattr(kind, name)) for name in names_of(kind)}


def fields_of(kind: str) -> Mapping[str, Hint]:
    """Fields of a prediction of a kind: those of `Family.listed`'s objects; none if the kind does not tell."""
    known = PREDICTIONS.get(kind, {})
    return known if isinstance(known, Mapping) else hints_of(known)


def _returned(member: property) -> Hint:
    return _hint(typing.get_type_hints(member.fget, include_extras=True)["return"])._replace(is_property=True)


def _hint(hint: Any) -> Hint:
    if typing.get_origin(hint) is Annotated:
        inner, annotated = _hint(hint.__origin__), hint.__metadata__
        return inner._replace(
            schema={**inner.schema, **{name: value for schema in annotated for name, value in schema.items()}}
        )
    if typing.get_origin(hint) is Union:
        return _hint(typing.get_args(hint)[0])._replace(optional=True)
    return Hint(hint, False, {})


def json_schema(hints: Mapping[str, Hint]) -> dict[str, Any]:
    return object_schema({name: _schema(hint) for name, hint in hints.items()})


def object_schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _schema(hint: Hint) -> dict[str, Any]:
    return {**({} if "type" in hint.schema else _plain_schema(hint)), **hint.schema}


def _plain_schema(hint: Hint) -> dict[str, Any]:
    origin, args = typing.get_origin(hint.type), typing.get_args(hint.type)
    if origin is tuple:
        return {"type": ["array", "null"] if hint.optional else "array", "items": _schema(_hint(args[0])), "minItems": 0}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(_hint(args[1]))}
    if hint.type not in _JSON:
        return json_schema(hints_of(hint.type))
    name = _JSON[hint.type]
    return {"type": [name, "null"] if hint.optional else name}


def arrow_type(hint: Any) -> Any:
    """Returns the type of a column of Arrow."""
    import pyarrow

    known = {str: pyarrow.string(), int: pyarrow.int32(), float: pyarrow.float64()}
    bare = _hint(hint).type
    origin, args = typing.get_origin(bare), typing.get_args(bare)
    if origin is tuple:
        return pyarrow.list_(arrow_type(args[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return pyarrow.map_(*map(arrow_type, args))
    return known[bare] if bare in known else pyarrow.struct(arrow_fields(hints_of(bare)))


def arrow_fields(hints: Mapping[str, Hint]) -> dict[str, Any]:
    return {name: arrow_type(hint.type) for name, hint in hints.items()}
