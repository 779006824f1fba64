"""Splits the body of a request into parts that fit a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bert_tf.errors import DataError
from bert_tf.extensions.serve.call import PREDICT, ROWS, Call, Part, every
from bert_tf.extensions.serve.refusal import BAD_REQUEST, ENCODED, TOO_LARGE, UNUSABLE, Refusal
from bert_tf.extensions.serve.settings import Limits
from bert_tf.extensions.serve.worker import Description
from bert_tf.io import documents, encodings
from bert_tf.io.documents import DocumentError
from bert_tf.library import reading
from bert_tf.library.reading import Reader

MODELS = "models"  # key of bodies, of a service of several

_TYPES = {bool: "true or false", str: "a string", int: "an integer"}

AS_IT_IS = "identity"  # of Content-Encoding
_TEXTS_OF_A_ROW = 8  # on average; a question with options has one more for each of these


def read_parts(name: str, body: bytes, reader: Reader, limits: Limits, *, batch_tokens: int) -> list[Part]:
    """Parses a JSON body into parts of at most `batch_tokens` (unless one example exceeds it); raises Refusal."""
    call = every()[name]
    rows, options = _rows(call, _value(body), limits)
    if not call.key and len(rows) != 1:
        raise Refusal(UNUSABLE, f"{len(rows)} rows; {name} takes one at a time")
    reader = call.reader(reader)
    examples, of_texts = _examples(rows, reader, limits)
    tokens = [call.computed(count, options) for count in of_texts]
    _refuse_many(tokens, limits, "" if tokens == of_texts else ", counted each time that one is computed")
    return [Part(name, examples[part], sum(tokens[part]), options) for part in _slices(tokens, batch_tokens)]


def read_several(
    body: bytes, models: Sequence[Description], limits: Limits, *, batch_tokens: int
) -> tuple[tuple[int, ...], list[Part]]:
    """As `read_parts`, for predictions of some models, which are returned by number: those that the body names, else all."""
    value = _value(body)
    known = [model.name for model in models]
    numbers = tuple(known.index(name) for name in _asked(value.pop(MODELS, known), known))
    rows, options = _rows(every()[PREDICT], value, limits)
    examples = []
    of_trunks: dict[str, list[list[int]]] = {}
    for model in (models[number] for number in numbers):
        try:
            of_model, of_texts = _examples(rows, model.reader, limits)
        except Refusal as error:
            raise Refusal(error.status, f"model {model.name}: {error.message}", error.headers) from error
        examples.append(of_model)
        of_trunks.setdefault(model.trunk, []).append(of_texts)
    # Once for the models of a trunk: layers above those that they share are not counted.
    once = [[max(of_row) for of_row in zip(*of_models)] for of_models in of_trunks.values()]
    tokens = [sum(of_row) for of_row in zip(*once)]
    _refuse_many(tokens, limits, f", counted for each of {len(of_trunks)} encoders" if len(of_trunks) > 1 else "")
    return numbers, [
        Part(PREDICT, [example for of_model in examples for example in of_model[part]], sum(tokens[part]), options, numbers)
        for part in _slices(tokens, batch_tokens)
    ]


def _refuse_many(tokens: Sequence[int], limits: Limits, counted: str = "") -> None:
    if sum(tokens) > limits.max_request_tokens:
        raise _too_large(f"{sum(tokens)} tokens{counted}", limits.max_request_tokens, "max_request_tokens")


def _asked(names: Any, known: Sequence[str]) -> list[str]:
    if not isinstance(names, list) or not names:
        raise Refusal(UNUSABLE, f"{MODELS} is {'empty' if names == [] else _named(names)}; list some of {', '.join(known)}")
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise Refusal(UNUSABLE, f"{MODELS}: there is no model {unknown!r:.80}; there are {', '.join(known)}")
    if len(set(names)) < len(names):
        raise Refusal(UNUSABLE, f"{MODELS}: name each model once")
    return names


def _value(body: bytes) -> Any:
    if body.startswith(encodings.GZIP):  # whatever its headers say
        raise encoded("gzip")
    try:
        value = documents.json_value(body.decode(), finite=True)
    except UnicodeDecodeError as error:
        raise Refusal(BAD_REQUEST, f"the body is not UTF-8: byte {error.start}") from error
    except DocumentError as error:
        raise Refusal(BAD_REQUEST, f"the body is not usable: {error}") from error
    if not isinstance(value, dict):
        raise Refusal(UNUSABLE, f'the body is {_named(value)}; give an object: {{"{ROWS}": [...]}}, or one row')
    return value


def encoded(how: str) -> Refusal:
    return Refusal(
        ENCODED, f"the body is {how:.80}, which is not supported; send uncompressed JSON", {"Accept-Encoding": AS_IT_IS}
    )


def _named(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _rows(call: Call, value: dict[str, Any], limits: Limits) -> tuple[list[Any], dict[str, Any]]:
    """The rows of a body and its options."""
    options = {name: value.pop(name) for name in call.options if name in value}
    for name, option in options.items():
        types = call.options[name].types
        if type(option) not in types:
            raise Refusal(UNUSABLE, f"{name} is {_named(option)}; give {' or '.join(_TYPES[each] for each in types)}")
    if ROWS not in value:
        return [value], options
    others = [key for key in value if key != ROWS]
    if others:
        raise Refusal(UNUSABLE, f"unknown key {others[0]!r:.80} beside {ROWS}")
    rows = value[ROWS]
    if not isinstance(rows, list):
        raise Refusal(UNUSABLE, f"{ROWS} is {_named(rows)}; give a list")
    if len(rows) > limits.max_rows:
        raise _too_large(f"{len(rows)} rows", limits.max_rows, "max_rows")
    return rows, options


def _examples(rows: list[Any], reader: Reader, limits: Limits) -> tuple[Sequence[Any], list[int]]:
    """The rows as examples, and the tokens of each."""
    try:
        examples = reader.examples(rows)
    except DataError as error:
        raise Refusal(UNUSABLE, str(error).removeprefix(f"{reading.ROWS}: ")) from error
    _check_texts([text for example in examples for text in example.texts], limits)
    return examples, reader.tokens(examples)


def _check_texts(texts: Sequence[str], limits: Limits) -> None:
    if len(texts) > _TEXTS_OF_A_ROW * limits.max_rows:
        raise Refusal(
            TOO_LARGE, f"{len(texts)} texts in all rows, at most {_TEXTS_OF_A_ROW * limits.max_rows}; send fewer rows"
        )
    longest = max(map(len, texts), default=0)
    if longest > limits.max_text_length:
        raise _too_large(f"a text of {longest} characters", limits.max_text_length, "max_text_length")
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal(UNUSABLE, f"unpaired surrogate {text[error.start]!a}: write both halves of the pair") from error


def _too_large(sent: str, most: int, setting: str) -> Refusal:
    return Refusal(TOO_LARGE, f"{sent}, at most {most}; send less at a time, or start the service with --{setting}")


def _slices(tokens: Sequence[int], batch_tokens: int) -> Iterator[slice]:
    """Consecutive examples that fit a batch."""
    first, held = 0, 0
    for number, size in enumerate(tokens):
        if number > first and held + size > batch_tokens:
            yield slice(first, number)
            first, held = number, 0
        held += size
    if first < len(tokens):
        yield slice(first, len(tokens))
