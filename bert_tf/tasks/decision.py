"""The decision rule of a trained model, from logits to predictions; kept in decision.json beside the checkpoint."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL
from bert_tf.io import documents, files

DECISION = "decision"  # key of a trained model's record


@dataclasses.dataclass(frozen=True)
class Decision:
    """Unset fields keep the published rule: the most probable class, or labels from 0.5 on."""

    temperatures: tuple[float, ...] = ()  # logits are divided by them: one, or one for each of several labels
    thresholds: tuple[float, ...] = ()  # probability from which a label applies, or the second of two classes is predicted
    abstain_below: float | None = None  # probability of a class below which no label is predicted
    set_from: float | None = None  # probability from which a class is in the label set

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Decision:
        """Returns the rule of a trained model's record; fields of other versions are ignored."""
        recorded: dict[str, Any] = record.get(DECISION, {})
        values = {field.name: recorded.get(field.name) for field in dataclasses.fields(cls)}
        values.update({name: tuple(value) for name, value in values.items() if isinstance(value, list)})
        return cls(**{name: value for name, value in values.items() if value is not None})

    def fits(self, kind: str, labels: int) -> bool:
        """Whether it is a rule of a model of this kind, with so many labels."""
        several = kind == MULTI_LABEL
        of_classes = self.abstain_below is None and self.set_from is None
        thresholds = labels if several else 1 if kind == CLASSIFICATION and labels == 2 else 0
        return (
            len(self.temperatures) in (0, labels if several else 1)
            and len(self.thresholds) in (0, thresholds)
            and (of_classes or kind == CLASSIFICATION)
        )

    @property
    def head_options(self) -> tuple[tuple[str, Any], ...]:
        """Options of the head, which divides its logits: every engine and export then has calibrated ones."""
        return (("temperatures", self.temperatures),) if self.temperatures else ()

    def facts(self) -> dict[str, Any]:
        """Returns the fields with a value, for exports; temperatures are left out, since logits are divided already."""
        facts = {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, ())}
        facts.pop("temperatures", None)
        return facts


PUBLISHED = Decision()


def by_label(numbers: Sequence[float], labels: Sequence[str]) -> str:
    """Returns thresholds or temperatures with their labels; the one threshold of two classes is of the second, as F1."""
    return ", ".join(f"{label} {number:.3f}" for label, number in zip(labels[len(labels) - len(numbers) :], numbers))


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and 0.0 <= value < math.inf


_OF_DECISION: Mapping[str, Callable[[Any], bool]] = {
    "temperatures": lambda value: isinstance(value, list)
    and all(_is_number(temperature) and temperature > 0.0 for temperature in value),
    "thresholds": lambda value: value is None or (isinstance(value, list) and all(map(_is_number, value))),
    "abstain_below": lambda value: value is None or _is_number(value),
    "set_from": lambda value: value is None or _is_number(value),
    "fitted_on": lambda value: value is None or isinstance(value, dict),
}


def is_decision(value: Any) -> bool:
    """Whether a value from a file is a decision rule."""
    return isinstance(value, dict) and all(is_usable(value.get(name)) for name, is_usable in _OF_DECISION.items())


def load_decision(output_dir: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Returns the decision rule of a checkpoint in the folder, see the extension calibrate; None without one.

    Raises OutputError if it is damaged.
    """
    path = Path(output_dir) / run_layout.DECISION
    try:
        decision: Any = documents.parse_json(files.read_text(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be read: {error}; delete it, and calibrate again") from error
    if not is_decision(decision):
        raise OutputError(f"{path}: damaged; delete it, and calibrate again")
    return dict(decision)
