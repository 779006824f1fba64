"""A sentence or a pair, and its label."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Union

# Usual names of text columns; if none is named, data must have those of exactly one row.
USUAL_TEXTS = (("text",), ("sentence",), ("text_a", "text_b"), ("sentence1", "sentence2"))

TEXTS = "texts"  # key of a run's record: number of texts per row

Label = Union[str, float, tuple[str, ...]]  # a name, a number, or names: one type for each kind


@dataclasses.dataclass(frozen=True)
class SentenceExample:
    guid: str  # split and number, as in the published script: "dev-1"; for custom data the id
    text_a: str
    text_b: str | None = None
    label: Label | None = None  # None if it is to be predicted

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text_a,) if self.text_b is None else (self.text_a, self.text_b)


def recorded_texts(record: Mapping[str, Any]) -> int | None:
    """Returns the number of texts per training row, 1 or 2; None if the record does not have it."""
    if record.get("text_a") is None:
        return record.get(TEXTS)
    return 1 if record.get("text_b") is None else 2
