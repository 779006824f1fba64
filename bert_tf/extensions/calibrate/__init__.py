"""Calibrate: temperatures, thresholds and other rules of decisions, fitted on labelled examples (docs/calibration.md)."""

from __future__ import annotations

import dataclasses

from bert_tf import run_layout
from bert_tf.extension import Extension, NewCommand, Settings
from bert_tf.settings import group, setting


@dataclasses.dataclass(frozen=True)
class RuleSettings:
    threshold: str | None = setting(
        None,
        "threshold of the second of two classes, or of each of several labels: f1, precision:0.95, recall:0.9 or cost:FILE",
    )
    abstain: str | None = setting(
        None, "give no label for improbable classes: coverage:0.9 (share with a label), risk:0.02 (share of errors), below:0.7"
    )
    sets: float | None = setting(
        None, "give sets of classes that contain the true one in this share of examples, between 0 and 1: 0.9"
    )

    def __post_init__(self) -> None:
        if (self.threshold, self.abstain, self.sets) != (None, None, None):
            from bert_tf.extensions.calibrate import rules  # NumPy

            rules.check(self.threshold, self.abstain, self.sets)


@dataclasses.dataclass(frozen=True)
class CalibrationSettings(Settings):
    """Other rules are chosen by calibrated probabilities."""

    calibrate: bool = setting(False, "fit temperatures on half of the dev split, so that probabilities match accuracy")
    rules: RuleSettings = group(RuleSettings)


EXTENSION = Extension(
    settings=CalibrationSettings,
    section="Evaluation and prediction",
    programs=("fine-tune", "distill"),
    decides=True,
    part=f"{__name__}.part:Calibration",
    panel=f"{__name__}.panel:of_runs",
    shows=(run_layout.DECISION, f"{run_layout.BEST}/{run_layout.DECISION}"),
    commands={
        "calibrate": NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "fits temperatures, so that probabilities match the accuracy of predictions",
            computes=True,
        )
    },
)
