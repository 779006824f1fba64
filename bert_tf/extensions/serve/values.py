"""Predictions as JSON values, with the names that `Model.predict` uses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.io import documents
from bert_tf.tasks.predictions import names_of


def as_json(prediction: Any) -> bytes:
    value = plain(prediction)
    if callable(getattr(prediction, "details", None)):
        value.update(prediction.details())
    return documents.to_json(value).encode()


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
