"""Splits the body of a request into parts that fit a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.errors import DataError
from bert_tf.extensions.serve.call import ROWS, Call, Part, every
from bert_tf.extensions.serve.refusal import BAD_REQUEST, ENCODED, TOO_LARGE, UNUSABLE, Refusal
from bert_tf.extensions.serve.settings import Limits
from bert_tf.io import documents
from bert_tf.io.documents import DocumentError
from bert_tf.library import reading
from bert_tf.library.reading import Reader

_TYPES = {bool: "true or false", str: "a string", int: "an integer"}

_GZIP = b"\x1f\x8b"  # first bytes of such a body, whatever its headers say
AS_IT_IS = "identity"  # of Content-Encoding
_TEXTS_OF_A_ROW = 8  # on average; a question with options has one more for each of these


def read(name: str, body: bytes, reader: Reader, limits: Limits, *, batch_tokens: int) -> list[Part]:
    """Parses a JSON body into parts of at most `batch_tokens` (unless one example exceeds it); raises Refusal."""
    call = every()[name]
    rows, options = _rows(call, _value(body))
    if len(rows) > limits.max_rows:
        raise _too_large(f"{len(rows)} rows", limits.max_rows, "max_rows")
    if not call.key and len(rows) != 1:
        raise Refusal(UNUSABLE, f"{len(rows)} rows; {name} takes one at a time")
    reader = call.reader(reader)
    examples = _examples(rows, reader)
    _check_texts([text for example in examples for text in example.texts], limits)
    of_texts = reader.tokens(examples)
    tokens = [call.computed(count, options) for count in of_texts]
    times = "" if tokens == of_texts else ", counted each time that one is computed"
    if sum(tokens) > limits.max_request_tokens:
        raise _too_large(f"{sum(tokens)} tokens{times}", limits.max_request_tokens, "max_request_tokens")
    return _parts(name, examples, tokens, options, batch_tokens)


def _value(body: bytes) -> Any:
    if body.startswith(_GZIP):
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


def _rows(call: Call, value: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
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
    return rows, options


def _examples(rows: list[Any], reader: Reader) -> Sequence[Any]:
    try:
        return reader.examples(rows)
    except DataError as error:
        raise Refusal(UNUSABLE, str(error).removeprefix(f"{reading.ROWS}: ")) from error


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


def _parts(
    call: str, examples: Sequence[Any], tokens: Sequence[int], options: Mapping[str, Any], batch_tokens: int
) -> list[Part]:
    parts, first, held = [], 0, 0
    for number, size in enumerate(tokens):
        if number > first and held + size > batch_tokens:
            parts.append(Part(call, examples[first:number], held, options))
            first, held = number, 0
        held += size
    if first < len(examples):
        parts.append(Part(call, examples[first:], held, options))
    return parts
