"""Schemas, an example and the page's form for each kind of model.

Rows are read by the family, which may accept more shapes than the form; a kind without a form is served too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.kinds import Registry
from bert_tf.tasks.predictions import fields_of, json_schema, object_schema

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
GIVEN_ID: Schema = {"type": ["string", "number", "null"], "description": "comes back with the answer, as a string"}


def list_of(of: Schema, least: int = 0, most: int | None = None) -> Schema:
    return {"type": "array", "items": of, "minItems": least, **({} if most is None else {"maxItems": most})}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


@dataclasses.dataclass(frozen=True)
class Field:
    """An input of the page's form."""

    name: str  # key of the row
    label: str
    lines: int = 3  # height
    is_list: bool = False  # each line is a value of its own
    may_be_empty: bool = False  # left out of the row if empty


@dataclasses.dataclass(frozen=True)
class Form:
    """Request and response of one kind of model."""

    says: str  # what it does, one sentence
    row: Schema
    example: Mapping[str, Any]
    fields: tuple[Field, ...]
    shown: str  # how to show an answer: a name that page.js knows
    prediction: Schema = dataclasses.field(default_factory=lambda: {"type": "object"})  # of one answer


_EITHER_FIELDS = (Field("text_a", "Text"), Field("text_b", "Second text (leave empty for a single text)", may_be_empty=True))
PAIR_FIELDS = (Field("text_a", "Text"), Field("text_b", "Second text"))
PAIR = object_schema({"text_a": TEXT, "text_b": TEXT}, {"id": GIVEN_ID})
_SINGLES = (
    object_schema({"text": TEXT}, {"id": GIVEN_ID}),
    object_schema({"sentence": TEXT}, {"id": GIVEN_ID}),
    {**TEXT, "description": "only within rows: a text"},
    {**list_of(TEXT, 1, 1), "description": "only within rows: a text"},
)
PAIR_OF_ROWS: Schema = {**list_of(TEXT, 2, 2), "description": "only within rows: a pair"}
_PAIRS = (PAIR, object_schema({"sentence1": TEXT, "sentence2": TEXT}, {"id": GIVEN_ID}), PAIR_OF_ROWS)
_TEXT_OR_PAIR = "a text or a pair of texts"
PAIR_EXAMPLE = {"text_a": "The parcel arrived late.", "text_b": "The delivery took longer than promised."}


def _of_sentences(says: str, shown: str) -> Form:
    return Form(says, either(*_SINGLES, *_PAIRS), PAIR_EXAMPLE, _EITHER_FIELDS, shown)


CLASS = _of_sentences(f"Classifies {_TEXT_OR_PAIR}.", "labels")
LABELS = _of_sentences(f"Finds all labels that apply to {_TEXT_OR_PAIR}.", "labels")
NUMBER = _of_sentences(f"Predicts a number for {_TEXT_OR_PAIR}.", "number")

FORMS = Registry[Form](
    "form",
    {CLASSIFICATION: f"{__name__}:CLASS", REGRESSION: f"{__name__}:NUMBER", MULTI_LABEL: f"{__name__}:LABELS"},
)


# For sentences with a known number of texts per row: name of a row, its schemas, an example, the form's fields.
_BY_TEXTS: Mapping[int, tuple[str, tuple[Schema, ...], Mapping[str, Any], tuple[Field, ...]]] = {
    1: ("a text", _SINGLES, {"text": "The parcel arrived late, and the box was damaged."}, (Field("text", "Text"),)),
    2: ("a pair of texts", _PAIRS, PAIR_EXAMPLE, PAIR_FIELDS),
}


def of(kind: str, texts: int | None = None, columns: Sequence[str] = ()) -> Form | None:
    """None if the kind has no form.

    `texts` (1 or 2) is the number of sentences per row, None if both are accepted; `columns` are those of the training.
    """
    form = FORMS.get(kind)
    if form is None:
        return None
    form = dataclasses.replace(form, prediction=json_schema(fields_of(kind)))
    if texts is not None:
        row, schemas, example, fields = _BY_TEXTS[texts]
        says = form.says.replace(_TEXT_OR_PAIR, row)
        form = dataclasses.replace(form, says=says, row=either(*schemas), example=example, fields=fields)
    if columns:
        of_training = object_schema(dict.fromkeys(columns, TEXT), {"id": GIVEN_ID})
        form = dataclasses.replace(form, row=either(of_training, *form.row["anyOf"]))
    return form
