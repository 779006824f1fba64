"""Runs of a sweep as read from its result files: their settings, best first, and how much each setting matters."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.report.run_files import Run, is_number, mapping, read_object
from bert_tf.extensions.report.wording import shortened
from bert_tf.extensions.sweep import RESULTS, TABLE
from bert_tf.io import documents
from bert_tf.metrics.values import is_cost

DONE, PRUNED, FAILED = "done", "pruned", "failed"
STATES = {PRUNED: "stopped early", FAILED: "failed"}  # of runs without a comparable score
HELD_OUT = "held_out_"  # before the name of a metric
LEAST = 10  # runs; with fewer, a forest is meaningless

Floats = npt.NDArray[np.float64]

_EVALUATED = "eval_"
_DRAWN = re.compile(r"-trial(\d{1,9})$")  # ending of a run's name in a search
_FOLDS, _TREES, _SHUFFLES, _SEED = 5, 100, 10, 0  # of the forest


@dataclasses.dataclass(frozen=True)
class Trial:
    name: str
    task: str
    number: int | None  # in the order of a search; None in a grid
    varying: Mapping[str, Any]
    metrics: Mapping[str, Any]
    state: str  # DONE, PRUNED or FAILED
    metric: str  # the one that selects, as eval_accuracy; empty if unknown
    collapsed: bool = False  # nothing was learned


class Combination(NamedTuple):
    """Settings, and the runs that share them: the seeds."""

    varying: Mapping[str, Any]
    runs: Sequence[Trial]
    scores: Sequence[float]  # of the runs trained to the end
    held_out: Sequence[float]  # of the same, on rows that chose nothing

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.scores) if self.scores else None

    @property
    def sd(self) -> float | None:
        return statistics.stdev(self.scores) if len(self.scores) > 1 else None

    @property
    def marks(self) -> list[str]:
        """Such as 1 collapsed, 2 failed."""
        counts = {name: sum(run.state == state for run in self.runs) for state, name in STATES.items()}
        return [f"{count} {name}" for name, count in {**counts, "collapsed": self.collapsed}.items() if count]

    @property
    def collapsed(self) -> int:
        return sum(run.collapsed for run in self.runs)


@dataclasses.dataclass(frozen=True)
class Trials:
    """Those of one task, in the order in which they were drawn."""

    task: str
    metric: str  # the one that selects, as accuracy
    every: Sequence[Trial]

    def score(self, trial: Trial) -> float | None:
        value = trial.metrics.get(f"{_EVALUATED}{self.metric}")
        return float(value) if trial.state != FAILED and is_number(value) else None

    @property
    def drawn(self) -> bool:
        """Whether a search drew them."""
        return all(trial.number is not None for trial in self.every)

    @functools.cached_property
    def done(self) -> list[tuple[Trial, float]]:
        """Trained to the end, with their scores; only these are comparable."""
        scored = ((trial, self.score(trial)) for trial in self.every if trial.state == DONE)
        return [(trial, score) for trial, score in scored if score is not None]

    @functools.cached_property
    def ranked(self) -> list[Combination]:
        """The settings with the best mean first, those without a score last."""
        same: dict[str, list[Trial]] = {}
        for trial in self.every:
            same.setdefault(documents.to_json(dict(trial.varying), sort_keys=True), []).append(trial)
        scores = {trial.name: score for trial, score in self.done}
        combinations = (self._combination(runs, scores) for runs in same.values())
        return sorted(combinations, key=lambda combination: math.inf if combination.mean is None else -combination.mean)

    def _combination(self, runs: Sequence[Trial], scores: Mapping[str, float]) -> Combination:
        unseen = [run.metrics.get(f"{HELD_OUT}{self.metric}") for run in runs if run.name in scores]
        return Combination(
            runs[0].varying, runs, [scores[run.name] for run in runs if run.name in scores], list(filter(is_number, unseen))
        )

    @property
    def varied(self) -> list[str]:
        """Names of the settings that any runs differ in."""
        names = dict.fromkeys(name for trial in self.every for name in trial.varying)
        return [name for name in names if len({repr(trial.varying.get(name)) for trial in self.every}) > 1]

    @functools.cached_property
    def settings(self) -> list[str]:
        """Names of those that differ between the runs that are done."""
        varying = [trial.varying for trial, _ in self.done]
        names = [name for name in (varying[0] if varying else ()) if all(name in values for values in varying)]
        return [name for name in names if len({repr(values[name]) for values in varying}) > 1]


def folders(runs: Sequence[Run]) -> list[Path]:
    """Those of the sweeps that the runs stand for."""
    return [path for path in dict.fromkeys(run.series for run in runs) if path is not None and (path / TABLE).is_file()]


def read_trials(folder: Path) -> list[Trials]:
    """Runs by task; damaged files are skipped."""
    contents = (read_object(path) or {} for path in (folder / RESULTS).glob("*.json"))
    named = (content for content in contents if all(isinstance(content.get(name), str) for name in ("name", "task")))
    trials = list(map(trial_of, named))
    trials.sort(key=lambda trial: (trial.task, trial.number or 0, trial.name))
    return [of_task(task, list(every)) for task, every in itertools.groupby(trials, key=lambda trial: trial.task)]


def trial_of(result: Mapping[str, Any]) -> Trial:
    """Of the content of a result's file, which another program may have written."""
    name, metric = result["name"], result.get("metric")
    number = _DRAWN.search(name)
    return Trial(
        name,
        result["task"],
        int(number[1]) if number else None,
        mapping(result, "varying"),
        mapping(result, "metrics"),
        FAILED if result.get("error") else PRUNED if result.get("pruned") else DONE,
        metric if isinstance(metric, str) else "",
        bool(result.get("collapsed")),
    )


def of_task(task: str, every: Sequence[Trial]) -> Trials:
    return Trials(task, next(_selecting(every), "")[len(_EVALUATED) :], every)


def _selecting(every: Sequence[Trial]) -> Iterator[str]:
    """The metrics that select, then measured ones where higher is better."""
    yield from (trial.metric for trial in every if trial.metric)
    for name in itertools.chain.from_iterable(trial.metrics for trial in every):
        if name.startswith(_EVALUATED) and not is_cost(name):
            yield name


def text(value: Any) -> str:
    """A value of a setting, short enough for a chart."""
    return shortened(f"{value:.3g}" if isinstance(value, float) else str(value))


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
