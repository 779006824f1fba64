"""Fits the decision rule of a trained model on some labelled examples, and measures it on others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf import run_layout
from bert_tf.batch import trained
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.extensions.calibrate import RuleSettings, measure
from bert_tf.extensions.calibrate import rules as decision_rules
from bert_tf.extensions.calibrate.measure import Bin, Calibration
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.io import atomic, documents
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, table
from bert_tf.metrics import probabilities
from bert_tf.metrics.probabilities import LabelledLogits
from bert_tf.tasks import families
from bert_tf.tasks.base import Example, Family
from bert_tf.tasks.decision import Decision, by_label
from bert_tf.tasks.sentence import scores
from bert_tf.tasks.sentence.evaluation import RULE_FIGURES

_NAMES = {"ece": "ECE", "nll": "NLL", "brier": "Brier"}
FEWEST = 20  # examples: fewer say nothing about probabilities


@dataclasses.dataclass(frozen=True)
class Calibrated(Printed):
    """The decision rule of a model, and its effect.

    Attributes:
      data: name of the labelled examples.
      fitted: number of examples that the rule was fitted on.
      reported: number of other examples, on which all figures are measured.
      decision: the rule; `temperatures` has one, or one for each label of a multi-label model.
      before: quality of the published probabilities.
      after: quality of the calibrated ones.
      reliability: points of both reliability diagrams.
      ece_by_chance: ECE that as many calibrated predictions have on average, since bins are small.
      metrics: metrics of the task before and after, if a rule other than temperatures was requested.
      rule: coverage and risk with abstention, coverage and mean size of label sets.
      risk_coverage: risk by coverage, from the most confident predictions down; empty for several labels and tags.
      labels: of the model.
    """

    data: str
    fitted: int
    reported: int
    decision: Decision
    before: Calibration
    after: Calibration
    reliability: dict[str, list[Bin]]
    ece_by_chance: float
    metrics: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    rule: dict[str, float] = dataclasses.field(default_factory=dict)
    risk_coverage: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    labels: tuple[str, ...] = ()

    @property
    def temperatures(self) -> tuple[float, ...]:
        return self.decision.temperatures

    def __str__(self) -> str:
        rows = [
            [_NAMES[name], f"{before:.4f}", f"{after:.4f}"]
            for name, before, after in zip(Calibration._fields, self.before, self.after)
        ]
        rows += [[name, f"{before:.4f}", f"{after:.4f}"] for name, (before, after) in self.metrics.items()]
        facts = {**self.decision.facts(), **self.rule}
        thresholds = facts.pop("thresholds", ())
        rules = [f"thresholds: {by_label(thresholds, self.labels)}"] if thresholds else []
        rules += [f"{name}: {value:.3f}" for name, value in facts.items()]
        one_temperature = len(self.temperatures) == 1
        temperatures = f"{self.temperatures[0]:.3f}" if one_temperature else by_label(self.temperatures, self.labels)
        return "\n".join(
            [
                f"{self.data}: fitted on {self.fitted} examples, measured on {self.reported} others",
                *table(["", "before", "after"], rows),
                f"temperature: {temperatures}",
                _by_chance(self.ece_by_chance),
                *rules,
            ]
        )


def _by_chance(ece: float) -> str:
    return f"a perfectly calibrated model would have an ECE of about {ece:.4f} on this many rows"


@dataclasses.dataclass(frozen=True)
class Checked(Printed):
    """How good the probabilities of a model are.

    Attributes:
      data: what it was measured on.
      examples: their number.
      quality: calibration error, negative log-likelihood and Brier score.
      ece_by_chance: the calibration error of a perfectly calibrated model on as many decisions.
    """

    data: str
    examples: int
    quality: Calibration
    ece_by_chance: float

    def __str__(self) -> str:
        rows = [[_NAMES[name], f"{value:.4f}"] for name, value in self.quality._asdict().items()]
        (_, *lines) = table(["", ""], rows)
        return "\n".join([f"{self.data}: measured on {self.examples} examples", *lines, _by_chance(self.ece_by_chance)])


NO_RULES = RuleSettings()


def calibrate(
    family: Family,
    predict: Callable[[Sequence[Example]], Any],
    examples: Sequence[Example],
    *,
    data: str,
    seed: int,
    rules: RuleSettings = NO_RULES,
) -> Calibrated:
    """Fits on a random half; `predict` returns uncalibrated predictions, `data` names the examples in messages.

    Raises FlagError if the family has no probabilities or takes no such rule, DataError if there are too few examples.
    """
    check(family, len(examples), data=data, rules=rules)
    order = np.random.default_rng(seed).permutation(len(examples))
    fitted, reported = ([examples[index] for index in sorted(half)] for half in np.array_split(order, 2))
    of_fitted, of_reported = predict(fitted), predict(reported)
    parts, others = (list(family.labelled_logits(*pair)) for pair in ((of_fitted, fitted), (of_reported, reported)))
    temperatures = tuple(_temperature(part, family, number) for number, part in enumerate(parts))
    known, after = (
        [measure.scaled(part, temperature) for part, temperature in zip(half, temperatures)] for half in (parts, others)
    )
    decision = _decision(family, rules, temperatures, known)
    is_of_classes = family.kind == CLASSIFICATION
    calibrated = Calibrated(
        data,
        len(fitted),
        len(reported),
        decision,
        measure.measure(others),
        measure.measure(after),
        {"before": measure.bins(others), "after": measure.bins(after)},
        measure.chance(after),
        risk_coverage=decision_rules.risk_coverage(*_decided(after[0], decision.thresholds)) if is_of_classes else [],
        labels=tuple(family.labels),
    )
    if rules == NO_RULES:
        return calibrated
    decided = families.with_decision(family, calibrated.decision).evaluation(of_reported / np.array(temperatures), reported)
    before = family.evaluation(of_reported, reported).metrics
    return dataclasses.replace(
        calibrated,
        metrics={name: (before[name], value) for name, value in decided.metrics.items()},
        rule={name: decided.more[name] for name in RULE_FIGURES if name in decided.more},
    )


def checked(family: Family, predictions: Any, examples: Sequence[Example], *, data: str) -> Checked:
    """Measures the probabilities of predictions; see `check` for what is raised before."""
    parts = list(family.labelled_logits(predictions, examples))
    return Checked(data, len(examples), measure.measure(parts), measure.chance(parts))


def check(family: Family, examples: int, *, data: str, rules: RuleSettings) -> None:
    """Raises what `calibrate` does, before predictions are computed."""
    if not hasattr(family, "decision") or family.kind == REGRESSION:
        raise FlagError(f"a model of {family.kind} has no probabilities of labels: there is nothing to calibrate")
    two = family.kind == CLASSIFICATION and len(family.labels) == 2
    can = {
        "threshold": (two or family.kind == MULTI_LABEL, "two classes or several labels"),
        "abstain": (family.kind == CLASSIFICATION, "classes"),
        "sets": (family.kind == CLASSIFICATION, "classes"),
    }
    for name, (fits, kinds) in can.items():
        if getattr(rules, name) is not None and not fits:
            raise FlagError(f"--{name}: is for models of {kinds}, not of {family.kind}; leave it out")
    if examples < FEWEST:
        raise DataError(f"{examples} labelled examples are too few to calibrate on; give {FEWEST} or more", data)


def _decision(
    family: Family, rules: RuleSettings, temperatures: tuple[float, ...], known: Sequence[LabelledLogits]
) -> Decision:
    """Chooses the rules by calibrated logits of the examples to fit on."""
    shares = [probabilities.softmax(part.logits) for part in known]
    thresholds: tuple[float, ...] = ()
    if rules.threshold is not None:
        names = family.labels if family.kind == MULTI_LABEL else family.labels[1:]
        fitted = [_threshold(rules.threshold, *of_label) for of_label in zip(names, shares, known)]
        for name in (name for name, value in zip(names, fitted) if value is None):
            log.warning("no example to fit on has the label %s: its threshold stays %g", name, scores.THRESHOLD)
        thresholds = tuple(scores.THRESHOLD if value is None else value for value in fitted)
    below = None
    if rules.abstain is not None:
        below = decision_rules.abstain_below(rules.abstain, *_decided(known[0], thresholds))
    start = None if rules.sets is None else decision_rules.set_from(rules.sets, shares[0], known[0].labels)
    if start == 0.0:
        count = len(known[0].labels)
        text = "--sets=%g: every set has all classes, since %d examples to fit on allow at most %.3g; give more examples"
        log.warning(text, rules.sets, count, count / (count + 1))
    return Decision(temperatures, thresholds, below, start)


def _decided(part: LabelledLogits, thresholds: tuple[float, ...]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Probability of the class that is predicted for each example, and whether it is right."""
    predicted = scores.predictions(CLASSIFICATION, part.logits, Decision(thresholds=thresholds))
    return probabilities.softmax(part.logits)[np.arange(len(predicted)), predicted], predicted == part.labels


def _threshold(rule: str, name: str, shares: npt.NDArray[Any], part: LabelledLogits) -> float | None:
    try:
        return decision_rules.threshold(rule, shares[:, 1], part.labels)
    except FlagError as error:
        raise FlagError(f"{error}, of the label {name}") from error


def _temperature(part: LabelledLogits, family: Family, number: int) -> float:
    name = f" on {family.labels[number]}" if family.kind == MULTI_LABEL else ""
    if np.all(part.logits.argmax(axis=-1) == part.labels):  # the best one would be 0
        temperature = min(1.0, measure.fit_temperature(part, smoothed=True))
        text = "every decision%s is right: temperature %.3g, as if one more decision of two were wrong; give more examples"
        log.warning(text, name, temperature)
        return temperature
    temperature = measure.fit_temperature(part)
    if temperature > measure.EXTREME * 0.99:
        text = "decisions%s are hardly better than chance, or worse: the temperature is at its limit of %.0f"
        log.warning(text, name, measure.EXTREME)
    elif temperature < 1.01 / measure.EXTREME:
        text = "%d decisions%s do not determine the temperature: it is at its limit of %.2g; give more examples"
        log.warning(text, len(part.labels), name, 1 / measure.EXTREME)
    return temperature


def write(checkpoint: str, calibrated: Calibrated, digests: Iterable[str]) -> None:
    """Writes decision.json beside the checkpoint, which `batch.trained` reads; `digests` are those of the splits."""
    sha256 = trained.digest(checkpoint)
    if sha256 is None:
        raise CheckpointError(f"{checkpoint}: was deleted while it was calibrated; repeat the command")
    content = {
        "checkpoint_sha256": sha256,
        **dataclasses.asdict(calibrated.decision),
        "fitted_on": {"data": calibrated.data, "examples": calibrated.fitted, "data_sha256": " ".join(digests)},
        "reported_on": calibrated.reported,
        "before": calibrated.before._asdict(),
        "after": calibrated.after._asdict(),
        "reliability": calibrated.reliability,
        "ece_by_chance": calibrated.ece_by_chance,
        "metrics": calibrated.metrics,
        "rule": calibrated.rule,
        "risk_coverage": calibrated.risk_coverage,
    }
    path = Path(checkpoint).parent / run_layout.DECISION
    atomic.write_text(path, documents.to_json(content, indent=2, sort_keys=True) + "\n")
    log.info("the decision rule is in %s; predictions, the service and exports follow it", path)
