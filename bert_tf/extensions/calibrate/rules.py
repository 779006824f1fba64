"""Chooses thresholds, when to abstain, and label sets from calibrated probabilities of labelled examples.

Shapes: N examples, C classes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.errors import FlagError
from bert_tf.io import documents, files

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

_F1, _PRECISION, _RECALL, _COST = "f1", "precision", "recall", "cost"
_COVERAGE, _RISK, _BELOW = "coverage", "risk", "below"
_COSTS = ("false_positive", "false_negative")
_MOST = 1e9  # of a cost: sums over all examples stay exact enough
_NEVER = 1.5  # a threshold that no probability reaches


def check(threshold: str | None, abstain: str | None, sets: float | None) -> None:
    """Raises FlagError for a rule that no data can satisfy, before anything is computed."""
    if threshold is not None:
        _threshold_rule(threshold)
    if abstain is not None:
        _abstain_rule(abstain)
    if sets is not None and not 0.0 < sets < 1.0:
        raise FlagError(f"--sets={sets:g}: is a share between 0 and 1, such as 0.9")


def anywhere(rule: str) -> str:
    """A threshold's rule that means the same in any working directory."""
    kind, _, path = rule.partition(":")
    return f"{kind}:{Path(path).resolve()}" if kind == _COST else rule


def threshold(text: str, shares: Floats, labels: Labels) -> float | None:
    """Returns the probability from which a label is predicted, by probabilities [N] and true labels [N], 0 or 1.

    It lies between two probabilities that occur, so that rounding decides nothing. None if no label is true, which every
    threshold serves the same, except by cost. FlagError if no threshold will do.
    """
    kind, wanted = _threshold_rule(text)
    order = np.argsort(-shares, kind="stable")
    right = np.cumsum(labels[order] > 0)  # [N] true ones among the first n
    count = np.arange(1, len(order) + 1)
    total = max(1, int((labels > 0).sum()))
    candidates = np.flatnonzero(np.append(np.diff(shares[order]) < 0, True))  # the last of equal probabilities
    precision, recall = (right / count)[candidates], (right / total)[candidates]
    if kind != _COST and not right[-1]:
        return None
    if kind == _F1:
        best = int(np.argmax(2 * right[candidates] / (count[candidates] + total)))
    elif kind == _COST:
        positive, negative = wanted
        costs = positive * (count - right)[candidates] + negative * (total - right[candidates])
        best = int(np.argmin(costs))
        if negative * total <= costs[best]:  # predicting none is cheaper
            return _above(float(shares.max()))
    else:
        reached = precision if kind == _PRECISION else recall
        enough = np.flatnonzero(reached >= wanted[0])
        if not len(enough):
            raise FlagError(f"--threshold={text}: the best {kind} on the examples to fit on is {reached.max():.3f}")
        best = int(enough[-1] if kind == _PRECISION else enough[0])
    return _between(shares[order], int(candidates[best]))


def abstain_below(text: str, confidence: Floats, right: npt.NDArray[np.bool_]) -> float:
    """Returns the confidence below which no label is given, by the confidence of N predictions, and whether they are right."""
    kind, value = _abstain_rule(text)
    if kind == _BELOW:
        return value
    order = np.argsort(-confidence, kind="stable")
    candidates = np.flatnonzero(np.append(np.diff(confidence[order]) < 0, True))
    if kind == _COVERAGE:
        last = candidates[np.searchsorted((candidates + 1) / len(order), value)]
        return _between(confidence[order], int(last))
    risks = (np.cumsum(~right[order]) / np.arange(1, len(order) + 1))[candidates]
    enough = np.flatnonzero(risks <= value)
    if not len(enough):
        raise FlagError(f"--abstain={text}: the lowest share of errors on the examples to fit on is {risks.min():.3f}")
    return _between(confidence[order], int(candidates[enough[-1]]))


def set_from(share: float, shares: Floats, labels: Labels) -> float:
    """Returns the probability from which a class is in the set, by probabilities [N, C] and true classes [N].

    Sets hold the true class of a new example with probability `share` or more (Sadinle et al., 2019; split conformal).
    """
    of_true = np.sort(shares[np.arange(len(labels)), labels])[::-1]  # [N], the most probable first
    index = math.ceil((len(of_true) + 1) * Fraction(str(share))) - 1  # in floating point, 200 * 0.55 is above 110
    return _between(of_true, index) if index < len(of_true) else 0.0


_POINTS = 100


def risk_coverage(confidence: Floats, right: npt.NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Returns at most 100 points: the share of examples with a prediction, and of errors among these."""
    order = np.argsort(-confidence, kind="stable")
    wrong = np.cumsum(~right[order])
    last = np.unique(np.linspace(1, len(order), min(_POINTS, len(order))).round().astype(int))
    return [(float(count / len(order)), float(wrong[count - 1] / count)) for count in last]


def _between(falling: Floats, index: int) -> float:
    """Returns a number that is at most the one at an index, and above the next lower one."""
    lower = falling[falling < falling[index]]
    return float((falling[index] + (lower[0] if len(lower) else 0.0)) / 2)


def _above(share: float) -> float:
    """Returns a number between a probability and 1; above 1 if float32 has none."""
    middle = (share + 1.0) / 2
    return middle if np.float32(share) < np.float32(middle) < 1.0 else _NEVER


def _threshold_rule(text: str) -> tuple[str, tuple[float, ...]]:
    """Returns the kind of a rule, and the share or the two costs that it names."""
    kind, _, argument = text.partition(":")
    if kind not in (_F1, _PRECISION, _RECALL, _COST) or (kind == _F1) == bool(argument):
        raise FlagError(f"--threshold={text}: write f1, precision:0.95, recall:0.9 or cost:FILE")
    if kind == _F1:
        return kind, ()
    return kind, _costs(argument) if kind == _COST else (_share(f"--threshold={text}", argument),)


def _abstain_rule(text: str) -> tuple[str, float]:
    kind, _, argument = text.partition(":")
    if kind not in (_COVERAGE, _RISK, _BELOW) or not argument:
        raise FlagError(f"--abstain={text}: write coverage:0.9, risk:0.02 or below:0.7")
    return kind, _share(f"--abstain={text}", argument)


def _share(flag: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise FlagError(f"{flag}: {text!r:.40} is not a number between 0 and 1")
    return value


def _costs(path: str) -> tuple[float, float]:
    form = f"expected {{{_COSTS[0]!r}: 1, {_COSTS[1]!r}: 5}}".replace("'", '"')
    try:
        costs = documents.json_value(files.read_text(path))
    except OSError as error:
        raise FlagError(f"--threshold=cost:{path}: cannot read the file: {files.reason(error)}") from error
    except ValueError as error:
        raise FlagError(f"--threshold=cost:{path}: {form}") from error
    if not isinstance(costs, dict) or set(costs) != set(_COSTS) or not all(map(_is_cost, costs.values())):
        raise FlagError(f"--threshold=cost:{path}: {form}, finite numbers from 0 on")
    return float(costs[_COSTS[0]]), float(costs[_COSTS[1]])


def _is_cost(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= _MOST
