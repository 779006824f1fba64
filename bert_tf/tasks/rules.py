"""Decoding rules of a family: how predictions are derived from outputs; changed without training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import FlagError
from bert_tf.tasks.base import Family


def with_rules(family: Family, rules: Mapping[str, Any]) -> Family:
    """Returns a family with some rules replaced; raises `FlagError` for a rule of another family."""
    foreign = next((name for name in rules if name not in family.rules), None)
    if foreign is not None:
        takes = ", ".join(f"--{name}" for name in family.rules)
        instead = f"it takes {takes}" if takes else "leave it out"
        raise FlagError(f"--{foreign}: a model of {family.kind} does not take it; {instead}")
    return dataclasses.replace(family, **rules) if rules else family  # type: ignore[type-var]


def rules_of(family: Family) -> dict[str, Any]:
    return {name: getattr(family, name) for name in family.rules}
