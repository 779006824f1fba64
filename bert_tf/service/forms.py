"""Schemas, an example and the page's form for each kind of model.

Rows are read by the family, which may accept more shapes than the form; a kind without a form is served too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.head_spec import CHOICE, CLASSIFICATION, CONTRASTIVE, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS

Schema = Mapping[str, Any]

OF_VECTORS = frozenset((SIMILARITY, CONTRASTIVE))

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_WHOLE: Schema = {"type": "integer"}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_ID: Schema = {"type": "string", "description": "the row's id, else row-0, row-1, ..."}
_GIVEN_ID: Schema = {"type": ["string", "number", "null"], "description": "comes back with the answer, as a string"}


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _list(of: Schema, least: int = 0, most: int | None = None) -> Schema:
    return {"type": "array", "items": of, "minItems": least, **({} if most is None else {"maxItems": most})}


def _either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


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
    prediction: Schema  # schema of one answer
    example: Mapping[str, Any]
    fields: tuple[Field, ...]
    shown: str  # how to show an answer: a name that page.js knows


_EITHER_FIELDS = (Field("text_a", "Text"), Field("text_b", "Second text (leave empty for a single text)", may_be_empty=True))
_PAIR_FIELDS = (Field("text_a", "Text"), Field("text_b", "Second text"))
_PAIR = _object({"text_a": _TEXT, "text_b": _TEXT}, {"id": _GIVEN_ID})
_SINGLES = (
    _object({"text": _TEXT}, {"id": _GIVEN_ID}),
    _object({"sentence": _TEXT}, {"id": _GIVEN_ID}),
    {**_TEXT, "description": "within rows alone: a text"},
    {**_list(_TEXT, 1, 1), "description": "within rows alone: a text"},
)
_PAIRS = (
    _PAIR,
    _object({"sentence1": _TEXT, "sentence2": _TEXT}, {"id": _GIVEN_ID}),
    {**_list(_TEXT, 2, 2), "description": "within rows alone: a pair"},
)
_SENTENCE = _either(*_SINGLES, *_PAIRS)
_TEXT_OR_PAIR = "a text or a pair of texts"
_PAIR_EXAMPLE = {"text_a": "He left.", "text_b": "He went away."}
_PROBABILITIES: Schema = {"type": "object", "additionalProperties": _SHARE, "description": "of each label by name"}
_SCORED = _object({"id": _ID, "label": _NUMBER, "cosine": {"type": "number", "minimum": -1.001, "maximum": 1.001}})
_PAIR_OF_TEXTS = _either(_PAIR, {**_list(_TEXT, 2, 2), "description": "within rows alone: a pair"})


def _of_pairs(says: str) -> Form:
    return Form(says, _PAIR_OF_TEXTS, _SCORED, _PAIR_EXAMPLE, _PAIR_FIELDS, "pair")


_CANDIDATE = _object(
    {
        "text": {**_TEXT, "description": "empty for no answer"},
        "probability": _SHARE,
        "start": _or_null(_WHOLE),
        "end": _or_null(_WHOLE),
        "window": _WHOLE,
        "start_logit": _NUMBER,
        "end_logit": _NUMBER,
    }
)
_ENTITY = _object(
    {
        "type": _TEXT,
        "text": _TEXT,
        "start": {**_WHOLE, "description": "first character, counted in code points"},
        "end": {**_WHOLE, "description": "the character after the last"},
        "first_word": _WHOLE,
        "end_word": _WHOLE,
        "score": _SHARE,
    }
)

FORMS: Mapping[str, Form] = {
    CLASSIFICATION: Form(
        f"Says which of several labels {_TEXT_OR_PAIR} has.",
        _SENTENCE,
        _object({"id": _ID, "label": _TEXT, "probabilities": _PROBABILITIES}),
        _PAIR_EXAMPLE,
        _EITHER_FIELDS,
        "labels",
    ),
    MULTI_LABEL: Form(
        f"Says which of several labels apply to {_TEXT_OR_PAIR}.",
        _SENTENCE,
        _object({"id": _ID, "label": _list(_TEXT), "probabilities": _PROBABILITIES}),
        _PAIR_EXAMPLE,
        _EITHER_FIELDS,
        "labels",
    ),
    REGRESSION: Form(
        f"Gives {_TEXT_OR_PAIR} a number.",
        _SENTENCE,
        _object({"id": _ID, "label": _NUMBER, "probabilities": {**_PROBABILITIES, "maxProperties": 0}}),
        _PAIR_EXAMPLE,
        _EITHER_FIELDS,
        "number",
    ),
    SPAN: Form(
        "Finds the answer to a question in a text.",
        _either(
            _object({"question": _TEXT, "context": _TEXT}, {"id": _GIVEN_ID, "title": _TEXT}),
            {**_list(_TEXT, 2, 2), "description": "within rows alone: question and context"},
        ),
        _object(
            {
                "id": _ID,
                "label": {**_TEXT, "description": "the answer, as it stands in the context; empty for none"},
                "probability": _SHARE,
                "start": {**_or_null(_WHOLE), "description": "first character of the answer, counted in code points"},
                "end": {**_or_null(_WHOLE), "description": "the character after the last"},
                "window": _WHOLE,
                "null_odds": _or_null(_NUMBER),
                "n_best": _list(_CANDIDATE),
                "best": _TEXT,
            }
        ),
        {"question": "Who left?", "context": "Ann left early."},
        (Field("question", "Question", lines=1), Field("context", "Text that holds the answer", lines=8)),
        "answer",
    ),
    TAGS: Form(
        "Gives each word of a sentence a tag, and finds the entities in it.",
        _either(
            _object({"text": _TEXT}, {"id": _GIVEN_ID}),
            _object({"tokens": _list(_TEXT)}, {"id": _GIVEN_ID}),
            {**_TEXT, "description": "within rows alone: a text, which is cut into words"},
            {**_list(_TEXT), "description": "within rows alone: the words"},
        ),
        _object(
            {
                "id": _ID,
                "words": _list(_TEXT),
                "label": {**_list(_TEXT), "description": "the tag of each word, of entities in IOB2"},
                "scores": {**_list(_SHARE), "description": "probability of each tag"},
                "entities": _list(_ENTITY),
            }
        ),
        {"text": "Ann left Rome."},
        (Field("text", "Sentence"),),
        "words",
    ),
    CHOICE: Form(
        "Chooses one of several options.",
        _either(
            _object({"options": _list(_TEXT, 2)}, {"context": _TEXT, "question": _TEXT, "id": _GIVEN_ID}),
            {"type": "object", "required": ["ending0", "ending1"], "description": "SWAG's columns: sent1, sent2, ending0, ..."},
            {"type": "array", "minItems": 3, "maxItems": 3, "description": "within rows alone: context, question, options"},
        ),
        _object(
            {
                "id": _ID,
                "label": {**_WHOLE, "description": "number of the option, from 0"},
                "option": _TEXT,
                "probabilities": _list(_SHARE),
                "probability": _SHARE,
            }
        ),
        {"context": "It rains.", "question": "What do they do?", "options": ["They stay in.", "They swim."]},
        (
            Field("context", "Context", may_be_empty=True),
            Field("question", "Question (may be empty)", lines=1, may_be_empty=True),
            Field("options", "Options, one in each line", lines=4, is_list=True),
        ),
        "options",
    ),
    SIMILARITY: _of_pairs("Says how alike two texts are, and makes vectors of texts."),
    CONTRASTIVE: _of_pairs("Says how near two texts are, and makes vectors of texts."),
}

# Of sentences, where it is known how many texts a row has.
_BY_TEXTS: Mapping[int, dict[str, Any]] = {
    1: {
        "says": "a text",
        "row": _either(*_SINGLES),
        "example": {"text": "He left."},
        "fields": (Field("text", "Text"),),
    },
    2: {"says": "a pair of texts", "row": _either(*_PAIRS), "example": _PAIR_EXAMPLE, "fields": _PAIR_FIELDS},
}


def of(kind: str, texts: int | None = None) -> Form | None:
    """None if the kind has no form; `texts` (1 or 2) is the number of sentences per row, None if both are accepted."""
    form = FORMS.get(kind)
    if form is None or texts is None:
        return form
    changed = _BY_TEXTS[texts]
    says = form.says.replace(_TEXT_OR_PAIR, changed["says"])
    return dataclasses.replace(form, **{**changed, "says": says})
