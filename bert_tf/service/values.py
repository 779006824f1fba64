"""Predictions as JSON values, with the names that `Model.predict` uses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import documents
from bert_tf.tasks.predictions import names_of
from bert_tf.tasks.span.predictions import Prediction as Answer


def as_json(prediction: Any) -> bytes:
    return documents.to_json(_answer(prediction) if isinstance(prediction, Answer) else plain(prediction)).encode()


def plain(value: Any) -> Any:
    """Converts a value to JSON types; an object becomes its fields and properties by name."""
    if dataclasses.is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in names_of(type(value))}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _answer(answer: Answer) -> dict[str, Any]:
    listed = [{**candidate._asdict(), "probability": probability} for candidate, probability in answer.n_best]
    return {**plain(answer), "n_best": listed}


def vector_as_json(vector: npt.NDArray[np.float32]) -> bytes:
    """A JSON list with enough digits to round-trip float32."""
    return f"[{','.join(map(str, vector))}]".encode()
