"""Fits the temperatures of a trained model on some labelled examples, and measures its probabilities on others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import run_layout
from bert_tf.batch import trained
from bert_tf.errors import DataError, FlagError
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.inputs.cache import examples_digest
from bert_tf.io import atomic, documents
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, table
from bert_tf.metrics import calibration
from bert_tf.metrics.calibration import Bin, Calibration, Decisions
from bert_tf.tasks.base import Example, Family

FEWEST = 20  # examples: fewer tell nothing about probabilities


@dataclasses.dataclass(frozen=True)
class Calibrated(Printed):
    """Temperatures of a model, and the quality of its probabilities without and with them.

    Attributes:
      data: name of the labelled examples.
      fitted: number of examples that the temperatures were fitted on.
      reported: number of others, which all figures are about.
      temperatures: one, or one for each label of a multi-label model.
      before: quality of the published probabilities.
      after: quality of the calibrated ones.
      reliability: points of both reliability diagrams.
    """

    data: str
    fitted: int
    reported: int
    temperatures: tuple[float, ...]
    before: Calibration
    after: Calibration
    reliability: dict[str, list[Bin]]

    def __str__(self) -> str:
        rows = [
            [name.upper() if name != "brier" else "Brier", f"{before:.4f}", f"{after:.4f}"]
            for name, before, after in zip(Calibration._fields, self.before, self.after)
        ]
        return "\n".join(
            [
                f"{self.data}: fitted on {self.fitted} examples, measured on {self.reported} others",
                *table(["", "before", "after"], rows),
                f"temperature: {', '.join(f'{one:.3f}' for one in self.temperatures)}",
            ]
        )


def calibrate(
    family: Family, predict: Callable[[Sequence[Example]], Any], examples: Sequence[Example], *, data: str, seed: int
) -> Calibrated:
    """Fits on a random half; `predict` returns uncalibrated predictions, `data` names the examples in messages.

    Raises FlagError if the family has no probabilities, DataError if there are too few examples.
    """
    if len(examples) < FEWEST:
        raise DataError(f"{len(examples)} labelled examples are too few to calibrate by; give {FEWEST} or more", data)
    order = np.random.default_rng(seed).permutation(len(examples))
    fitted, reported = ([examples[place] for place in sorted(half)] for half in np.array_split(order, 2))
    parts, others = (list(family.decisions(predict(half), half)) for half in (fitted, reported))
    if not parts:
        raise FlagError(f"a model of {family.kind} has no probabilities of labels: there is nothing to calibrate")
    temperatures = tuple(_temperature(part, family, number) for number, part in enumerate(parts))
    after = [calibration.scaled(part, temperature) for part, temperature in zip(others, temperatures)]
    return Calibrated(
        data,
        len(fitted),
        len(reported),
        temperatures,
        calibration.measure(others),
        calibration.measure(after),
        {"before": calibration.bins(others), "after": calibration.bins(after)},
    )


def _temperature(part: Decisions, family: Family, number: int) -> float:
    if np.all(part.logits.argmax(axis=-1) == part.labels):  # the best one would be 0
        name = f" on {family.labels[number]}" if family.kind == MULTI_LABEL else ""
        log.warning("every decision%s is right: the temperature stays 1; calibrate with more examples", name)
        return 1.0
    return calibration.fit_temperature(part)


def write(checkpoint: str, found: Calibrated, examples: Sequence[Example]) -> Path:
    """Writes decision.json beside the checkpoint, which `batch.trained` reads."""
    content = {
        "checkpoint_sha256": trained.digest(checkpoint),
        "temperatures": found.temperatures,
        "fitted_on": {"data": found.data, "examples": found.fitted, "data_sha256": examples_digest(examples)},
        "reported_on": found.reported,
        "before": found.before._asdict(),
        "after": found.after._asdict(),
        "reliability": found.reliability,
    }
    path = Path(checkpoint).parent / run_layout.DECISION
    atomic.write_text(path, documents.to_json(content, indent=2, sort_keys=True) + "\n")
    log.info("temperatures are in %s; predictions, the service and exports use them", path)
    return path
