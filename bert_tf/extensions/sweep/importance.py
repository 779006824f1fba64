"""Importance of settings: how much a random forest loses when one is shuffled, on runs left out of its fit.

Permutation importance (Breiman, 2001) with scikit-learn's forest. On the runs of its fit, memorization would count too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.report.run_files import is_number
from bert_tf.extensions.sweep.trials import Trials, text

LEAST = 10  # runs; with fewer, a forest is meaningless

_FOLDS, _TREES, _SHUFFLES, _SEED = 5, 100, 10, 0

Floats = npt.NDArray[np.float64]


class Importance(NamedTuple):
    runs: int
    r2: float  # of the forest, on left-out runs
    shares: Mapping[str, float]  # of the increase of its error, the largest first


def importance(trials: Trials) -> Importance | None:
    """None with too few runs, if all have the same score, or if the settings do not explain the scores."""
    scores = np.array([score for _, score in trials.done], np.float64)
    if len(scores) < LEAST or np.ptp(scores) == 0:
        return None
    columns = np.stack([_column([trial.varying[name] for trial, _ in trials.done]) for name in trials.settings], axis=1)
    left, lost = _of_left_out(columns, scores)
    r2 = 1 - left / float(np.var(scores))
    lost = np.maximum(lost, 0.0)
    if r2 <= 0 or not lost.any():
        return None
    shares = dict(zip(trials.settings, (lost / lost.sum()).tolist()))
    return Importance(len(scores), r2, dict(sorted(shares.items(), key=lambda pair: -pair[1])))


def _column(values: Sequence[Any]) -> Floats:
    """Numbers as they are, since trees see only their order; others by their place in the alphabet."""
    if all(map(is_number, values)):
        return np.array(values, np.float64)
    return np.unique([text(value) for value in values], return_inverse=True)[1].astype(np.float64)


def _of_left_out(columns: Floats, scores: Floats) -> tuple[float, Floats]:
    """Mean squared error of left-out runs, and its increase for each shuffled setting.

    A setting is shuffled among all runs, since a few left-out ones have too few orders.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import KFold

    parts = list(KFold(_FOLDS, shuffle=True, random_state=_SEED).split(columns))
    forests = [RandomForestRegressor(_TREES, random_state=_SEED).fit(columns[fitted], scores[fitted]) for fitted, _ in parts]

    def error(inputs: Floats) -> float:
        squares = [(forest.predict(inputs[left]) - scores[left]) ** 2 for forest, (_, left) in zip(forests, parts)]
        return float(np.concatenate(squares).mean())

    least, rng = error(columns), np.random.default_rng(_SEED)
    lost = np.zeros(columns.shape[1])
    for column in range(columns.shape[1]):
        for _ in range(_SHUFFLES):
            shuffled = columns.copy()
            shuffled[:, column] = rng.permutation(columns[:, column])
            lost[column] += (error(shuffled) - least) / _SHUFFLES
    return least, lost
