"""Strict JSON and YAML: any problem of a document is one error that names the line.

Python's own readers take the last of two equal keys, fail with RecursionError on deep nesting, and accept NaN,
which is not JSON, and lone surrogates, which no file can hold.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any

from bert_tf.io import encodings, files

LARGEST_SETTING = 2**31 - 1  # of the whole numbers of flags and jobs; the seeds of replicas lie 2**32 apart

_LARGEST = 1 << 24  # bytes of a document that a person or a tool writes; /dev/zero has no end
_DEEPEST = 64  # brackets in brackets
_LARGEST_YAML = 1 << 20  # characters; its reader takes six seconds for so many
_LARGEST_NUMBER = 1 << 63  # beyond that even printing one may fail
_MOST_VALUES = 100_000  # of YAML, with its aliases written out: nine lines of aliases can stand for a billion values
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)


class DocumentError(ValueError):
    """A text is not usable JSON or YAML; `line` counts from 1, None if no line is to blame."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem, self.line = problem, line
        super().__init__(problem if line is None else f"line {line}: {problem}")

    def place(self, path: object) -> str:
        return f"{path}" if self.line is None else f"{path}:{self.line}"


class NotJsonError(DocumentError):
    """A text violates the grammar of JSON; `is_cut` if it may be the beginning of one that does not."""

    def __init__(self, problem: str, line: int | None = None, *, is_cut: bool = False) -> None:
        self.is_cut = is_cut
        super().__init__(problem, line)


def read_text(path: str | os.PathLike[str], *, most: int = _LARGEST) -> str:
    """Returns text without byte order mark; DocumentError if not UTF-8, OSError if unreadable or above `most` bytes."""
    data = files.read_bytes(path, most=most).removeprefix(codecs.BOM_UTF8)
    other_format = encodings.instead_of_text(data)
    if other_format:
        raise DocumentError(other_format)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError("not UTF-8", data.count(b"\n", 0, error.start) + 1) from error


def read_json(path: str | os.PathLike[str]) -> Any:
    return parse_json(read_text(path))


def parse_json(text: str, *, has_paths: bool = False) -> Any:
    """Returns a document's value; raises DocumentError also for strings and numbers that no setting can have.

    `has_paths` is for our own files: their strings may have bytes that are no UTF-8, as Python reads file names.
    """
    value = json_value(text)
    _check_values(value, has_paths=has_paths)
    return value


def json_value(text: str, *, finite: bool = False) -> Any:
    """Returns a JSON value whose strings and numbers may be anything; raises DocumentError.

    `finite` rejects NaN and Infinity, which Python writes but JSON lacks, and numbers that overflow to infinity.
    Repeated keys and deep nesting are always rejected.
    """
    hooks: dict[str, Any] = {"parse_constant": _constant, "parse_float": _float} if finite else {}
    try:
        with _document_errors():
            value = json.loads(text, object_pairs_hook=_object, **hooks)
    except _RepeatedKeyError as error:
        raise DocumentError(f"the key {error.args[0]!r:.80} appears twice", _line_of_repeated_key(text)) from error
    if text.count("[") + text.count("{") > _DEEPEST:
        _refuse_deep(value)
    return value


def json_at(text: str, start: int) -> tuple[Any, int]:
    """Returns the JSON value that begins at a character, and the place after it; raises DocumentError as `json_value`."""
    try:
        with _document_errors():
            value, end = _DECODER.raw_decode(text, start)
    except _RepeatedKeyError as error:
        raise DocumentError(f"the key {error.args[0]!r:.80} appears twice") from error
    if text.count("[", start, end) + text.count("{", start, end) > _DEEPEST:
        _refuse_deep(value)
    return value, end


@contextlib.contextmanager
def _document_errors() -> Iterator[None]:
    try:
        yield
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg.removesuffix(' at')} at character {error.colno}"
        raise NotJsonError(problem, error.lineno, is_cut=error.pos >= len(error.doc.rstrip())) from error
    except RecursionError as error:
        raise _too_deep() from error
    except (DocumentError, _RepeatedKeyError):
        raise
    except ValueError as error:  # a number of thousands of digits
        raise DocumentError(f"not usable: {str(error).partition(';')[0]}") from error


def _refuse_deep(value: Any) -> None:
    """Raises DocumentError for a value that is nested too deep to be printed."""
    waiting = [(value, 0)]
    while waiting:
        inner, depth = waiting.pop()
        if inner and depth == _DEEPEST:
            raise _too_deep()
        parts = inner.values() if isinstance(inner, dict) else inner
        waiting += [(part, depth + 1) for part in parts if isinstance(part, (dict, list))]


def parse_yaml(text: str) -> Any:
    """Returns a YAML or JSON value; DocumentError for repeated keys, deep nesting or aliases that expand too much."""
    if text.lstrip().startswith("{"):
        with contextlib.suppress(NotJsonError):  # YAML has braces too, but no surrogate pairs
            return parse_json(text)
    value = _yaml_value(text)
    _check_values(value)
    return value


def _yaml_value(text: str) -> Any:
    import yaml  # few commands need it

    if len(text) > _LARGEST_YAML:
        raise DocumentError(f"more than {_LARGEST_YAML >> 20} MB of YAML; write JSON")
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _measure(root, {})
        return loader.construct_document(root)
    except yaml.YAMLError as error:
        mark, position = getattr(error, "problem_mark", None), getattr(error, "position", None)
        line = mark.line + 1 if mark else None if position is None else text.count("\n", 0, position) + 1
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise DocumentError(f"neither YAML nor JSON: {reason}", line) from error
    except RecursionError as error:
        raise _too_deep() from error
    except DocumentError:
        raise
    except (ValueError, LookupError, AttributeError, TypeError) as error:  # 2024-13-45 is a date to YAML; !!bool x, !!int ''
        raise DocumentError(
            f"YAML reads a value as a date, number or switch, which it is not: {error}; put it in quotes"
        ) from error
    finally:
        if loader is not None:
            loader.dispose()


def _constant(name: str) -> Any:
    raise NotJsonError(f"not JSON: {name} is not a number there; leave it out, or give null")


def _float(digits: str) -> float:
    if not math.isfinite(float(digits)):
        raise DocumentError(f"the number {digits:.80} is too large")
    return float(digits)


class _RepeatedKeyError(Exception):
    """An object repeats a key."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _RepeatedKeyError(name)
            seen.add(name)
    return content


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _line_of_repeated_key(text: str) -> int:
    """Returns the line of a repeated key, which `json` names without its place."""
    objects: list[set[str]] = []
    before = ""
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign in ("{", "["):
            objects.append(set())
        elif sign in ("}", "]"):
            objects.pop()
        elif sign == ":":
            key = json.loads(before)
            if key in objects[-1]:
                return text.count("\n", 0, token.start()) + 1
            objects[-1].add(key)
        before = sign
    raise ValueError("no key appears twice")


def _measure(node: Any, known: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """Returns a node's number of values and its depth, aliases expanded; raises DocumentError beyond the limits.

    `known` has the same for visited nodes, by identity; None marks a node in progress, so that a cycle is detected.
    """
    line = node.start_mark.line + 1
    if id(node) not in known:
        known[id(node)] = None
        sizes = [_measure(child, known) for child in _children(node)]
        size, depth = 1 + sum(size for size, _ in sizes), 1 + max((depth for _, depth in sizes), default=0)
        if size > _MOST_VALUES:
            raise DocumentError(f"more than {_MOST_VALUES} values, with aliases (*name) written out", line)
        if depth > _DEEPEST:
            raise _too_deep(line)
        known[id(node)] = size, depth
    measured = known[id(node)]
    if measured is None:
        raise DocumentError("an alias (*name) that contains itself", line)
    return measured


def _children(node: Any) -> Iterator[Any]:
    if node.id == "sequence":
        yield from node.value
    elif node.id == "mapping":
        keys = set()
        for key, value in node.value:
            if key.id == "scalar":
                if (key.tag, key.value) in keys:
                    raise DocumentError(f"the key {key.value!r:.80} appears twice", key.start_mark.line + 1)
                keys.add((key.tag, key.value))
            yield from (key, value)


def _check_values(value: Any, *, has_paths: bool = False) -> None:
    """DocumentError for strings (keys too) with NUL or lone surrogates, and for numbers that no setting can have."""
    for part in _values(value):
        if isinstance(part, int) and abs(part) > _LARGEST_NUMBER:
            raise DocumentError(f"a number of {part.bit_length()} bits")
        if isinstance(part, float) and not math.isfinite(part):
            raise DocumentError(f"{part} where a number is expected")
        if isinstance(part, str):
            _check_text(part, "surrogateescape" if has_paths else "strict")


def _check_text(text: str, errors: str) -> None:
    if "\0" in text:
        raise DocumentError(f"the text {text!r:.80} holds a NUL character")
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        raise DocumentError(f"the text {text!r:.80} holds an unpaired surrogate {text[error.start]!a}") from error


def _values(root: Any) -> Iterator[Any]:
    """Yields a value and everything in it, keys included, without recursion; of integers in a list the extremes alone."""
    waiting = [(root, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value
        if depth > _DEEPEST:
            raise _too_deep()
        if isinstance(value, dict):
            waiting += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            is_counts = set(map(type, value)) == {int}  # as of a confusion matrix of thousands of labels
            waiting += [(part, depth + 1) for part in ((min(value), max(value)) if is_counts else value)]


def _too_deep(line: int | None = None) -> DocumentError:
    return DocumentError(f"nested more than {_DEEPEST} deep", line)


def to_json(value: Any, **options: Any) -> str:
    """Returns JSON with NaN and infinity as null, since JSON has no word for them."""
    return json.dumps(_finite(value), allow_nan=False, **options)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value
