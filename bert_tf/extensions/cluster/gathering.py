"""Gathers a cluster's predictions for metrics that need all at once: F1, correlations, intervals.

Only labels and predictions are gathered; texts of sentences are not moved, only digests that tell them apart.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from bert_tf.batch.session import Predictor
from bert_tf.features.columns import Features
from bert_tf.io import documents
from bert_tf.tasks.base import Family
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.predictions import joined
from bert_tf.tasks.sentence.rows import SentenceExample

_SIZE = struct.Struct("<Q")
_DIGITS = 16  # of a text's digest


class Gathered(NamedTuple):
    """A part of a split."""

    number: int  # position among all parts
    examples: Sequence[Any]  # with labels
    predictions: Any


@dataclasses.dataclass(frozen=True)
class GatheredForm:
    """How parts are written: each after its size."""

    assemble = None

    def encode(self, part: Gathered) -> bytes:
        data = documents.to_json(_written(part)).encode()
        return _SIZE.pack(len(data)) + data


class Gatherer(Predictor):
    """A model that predicts labelled examples; must be closed."""

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: Any) -> bytes:
        predictions = self.predictions(examples, features)
        part: bytes = form.encode(Gathered(number, [_without_texts(example) for example in examples], predictions))
        return part


def parts_of(file: BinaryIO) -> Iterator[Gathered]:
    while head := file.read(_SIZE.size):
        yield _read(documents.json_value(file.read(*_SIZE.unpack(head)).decode()))


def evaluation(parts: Iterable[Gathered], family: Family) -> Evaluation | None:
    """Evaluates parts, given in any order, in the order of their numbers; None if there are no examples."""
    ordered = sorted(parts, key=lambda part: part.number)
    examples = [example for part in ordered for example in part.examples]
    if not examples:
        return None
    return family.evaluation(joined([part.predictions for part in ordered]), examples)


def _without_texts(example: Any) -> Any:
    if not isinstance(example, SentenceExample):
        return example
    return dataclasses.replace(example, text_a=_digest(example.text_a), text_b=example.text_b and _digest(example.text_b))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_DIGITS]


def _written(value: Any) -> Any:
    """Returns a value as JSON: others may write to the shared folder, and unpickling would run their code."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        return {"array": base64.b64encode(array.tobytes()).decode(), "type": array.dtype.str, "shape": np.shape(value)}
    if isinstance(value, float):
        return {"float": value.hex()}  # JSON has no infinity
    kind = type(value)
    if _is_record(kind):
        return {"record": [kind.__module__, kind.__qualname__], "values": [_written(getattr(value, n)) for n in _names(kind)]}
    if isinstance(value, dict):
        return {"pairs": [[_written(key), _written(of_key)] for key, of_key in value.items()]}
    if isinstance(value, (list, tuple)):
        return {kind.__name__: [_written(item) for item in value]}
    return value


def _read(content: Any) -> Any:
    """Inverse of `_written`; creates only dataclasses and named tuples that are already imported."""
    if not isinstance(content, dict):
        return content
    if "array" in content:
        array = np.frombuffer(base64.b64decode(content["array"]), np.dtype(content["type"])).reshape(content["shape"])
        return array.copy() if content["shape"] else array[()]
    if "float" in content:
        return float.fromhex(content["float"])
    if "record" in content:
        module, name = content["record"]
        kind: Any = getattr(sys.modules.get(module), name, None)
        if not _is_record(kind):
            raise ValueError(f"{module}.{name} is no record of predictions")
        return kind(**dict(zip(_names(kind), map(_read, content["values"]))))
    if "pairs" in content:
        return {_read(key): _read(value) for key, value in content["pairs"]}
    [(kind, values)] = content.items()
    return {"list": list, "tuple": tuple}[kind](map(_read, values))


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")))


def _names(kind: Any) -> Sequence[str]:
    return getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind) if field.init]
