"""The decision rule of a trained model: what is made of its logits. It is kept in decision.json beside the checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

DECISION = "decision"  # key of a trained model's record


@dataclasses.dataclass(frozen=True)
class Decision:
    """Fields without a value leave the published rule as it is."""

    temperatures: tuple[float, ...] = ()  # logits are divided by them: one, or one for each of several labels

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Decision:
        """Returns the rule of a trained model's record; fields of other versions are ignored."""
        found = record.get(DECISION, {})
        return cls(**{field.name: tuple(found[field.name]) for field in dataclasses.fields(cls) if field.name in found})

    @property
    def head_options(self) -> tuple[tuple[str, Any], ...]:
        """Options of the head, which divides its logits: every engine and export then has calibrated ones."""
        return (("temperatures", self.temperatures),) if self.temperatures else ()


PUBLISHED = Decision()
