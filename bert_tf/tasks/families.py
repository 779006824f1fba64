"""Registry of task families by kind: restores the family of a trained model from its record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import FlagError, unknown_name
from bert_tf.kinds import Registry
from bert_tf.tasks.base import Family
from bert_tf.tasks.decision import Decision

_FAMILIES = Registry[type[Family]]("family")


def register(kind: str, family: type[Family]) -> None:
    """Adds a family; register its head under the same kind, see `modeling.heads.registry`.

    Args:
      kind: a unique name.
      family: its class, whose `from_record` creates the family of a trained model.

    Raises:
      ValueError: the name is taken.
    """
    _FAMILIES.register(kind, family)


def is_known(kind: object) -> bool:
    return isinstance(kind, str) and kind in _FAMILIES


def of_record(record: Mapping[str, Any]) -> Family:
    """Restores the family of a record, see `estimator.run_folder.trained`; raises `ValueError` for an unknown kind."""
    kind = record["kind"]
    if not is_known(kind):
        raise ValueError(unknown_name("kind", str(kind), _FAMILIES))
    return _FAMILIES[kind].from_record(record)


def with_decision(family: Family, decision: Decision) -> Family:
    """Returns a family with a decision rule, if it supports one."""
    return dataclasses.replace(family, decision=decision) if hasattr(family, "decision") else family  # type: ignore[type-var]


def file_patterns() -> set[str]:
    return {pattern for family in _FAMILIES.values() for pattern in family.file_patterns}


def with_rules(family: Family, rules: Mapping[str, Any]) -> Family:
    """Returns a family with some rules replaced; raises `FlagError` for a rule of another family, or without effect."""
    foreign = next((name for name in rules if name not in family.rules), None)
    if foreign is not None:
        takes = ", ".join(f"--{name}" for name in family.rules)
        instead = f"it takes {takes}" if takes else "leave it out"
        raise FlagError(f"--{foreign}: a model of {family.kind} does not take it; {instead}")
    _refuse_idle(family, rules, usual=family)
    return dataclasses.replace(family, **rules) if rules else family  # type: ignore[type-var]


def refuse_idle_rules(family: Family) -> None:
    """Raises `FlagError` for a rule of a new model's family that is set and has no effect."""
    _refuse_idle(family, rules_of(family), usual=type(family))


def _refuse_idle(family: Family, rules: Mapping[str, Any], *, usual: object) -> None:
    for name, value in rules.items():
        why = family.no_effect(name)
        if why and value != getattr(usual, name):
            raise FlagError(f"--{name}: {why}; leave it out")


def rules_of(family: Family) -> dict[str, Any]:
    return {name: getattr(family, name) for name in family.rules}
