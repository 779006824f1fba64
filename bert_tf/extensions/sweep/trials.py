"""Runs of a sweep that differ in their settings, as read from its result files."""

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

from bert_tf.extensions.report.run_files import Run, is_number, mapping, read_object
from bert_tf.extensions.report.wording import shortened
from bert_tf.extensions.sweep import RESULTS, TABLE
from bert_tf.io import documents
from bert_tf.metrics.values import is_cost

DONE, PRUNED, FAILED = "done", "pruned", "failed"
STATES = {PRUNED: "stopped early", FAILED: "failed"}  # of runs without a comparable score
HELD_OUT = "held_out_"  # before the name of a metric

_EVALUATED = "eval_"
_DRAWN = re.compile(r"-trial(\d{1,9})$")  # ending of a run's name in a search


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
    trials = [trial for path in (folder / RESULTS).glob("*.json") if (trial := _trial(path)) is not None]
    trials.sort(key=lambda trial: (trial.task, trial.number or 0, trial.name))
    return [_of_task(task, list(every)) for task, every in itertools.groupby(trials, key=lambda trial: trial.task)]


def _trial(path: Path) -> Trial | None:
    content = read_object(path) or {}
    name, task = content.get("name"), content.get("task")
    if not isinstance(name, str) or not isinstance(task, str):
        return None
    state = FAILED if content.get("error") else PRUNED if content.get("pruned") else DONE
    number = _DRAWN.search(name)
    varying, metrics = mapping(content, "varying"), mapping(content, "metrics")
    metric = content.get("metric")
    drawn = int(number[1]) if number else None
    metric = metric if isinstance(metric, str) else ""
    return Trial(name, task, drawn, varying, metrics, state, metric, bool(content.get("collapsed")))


def _of_task(task: str, every: Sequence[Trial]) -> Trials:
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
