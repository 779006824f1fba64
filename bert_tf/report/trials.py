"""Runs of a sweep that differ in their settings, as read from its result files."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.metrics import ranking
from bert_tf.report.run_files import Run, is_number, mapping, read_object
from bert_tf.run_layout import SWEEP, SWEEP_RESULTS

DONE, PRUNED, FAILED = "done", "pruned", "failed"

_EVALUATED = "eval_"
_DRAWN = re.compile(r"-trial(\d{1,9})$")  # ending of a run's name in a search
_LONGEST = 24  # characters of a value that is a text


@dataclasses.dataclass(frozen=True)
class Trial:
    name: str
    task: str
    number: int | None  # in the order of a search; None in a grid
    varying: Mapping[str, Any]
    metrics: Mapping[str, Any]
    state: str  # DONE, PRUNED or FAILED
    metric: str  # the one that selects, as eval_accuracy; empty if unknown


@dataclasses.dataclass(frozen=True)
class Trials:
    """Those of one task, in the order in which they were drawn."""

    task: str
    metric: str  # the one that selects, as accuracy
    every: Sequence[Trial]

    def score(self, trial: Trial) -> float | None:
        found = trial.metrics.get(f"{_EVALUATED}{self.metric}")
        return float(found) if trial.state != FAILED and is_number(found) else None

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
    def settings(self) -> list[str]:
        """Names of those that differ between the runs that are done."""
        found = [trial.varying for trial, _ in self.done]
        names = [name for name in (found[0] if found else ()) if all(name in values for values in found)]
        return [name for name in names if len({repr(values[name]) for values in found}) > 1]


def folders(runs: Sequence[Run]) -> list[Path]:
    """Those of the sweeps that the runs stand for."""
    return [path for path in dict.fromkeys(run.series for run in runs) if path is not None and (path / SWEEP).is_file()]


def read(folder: Path) -> list[Trials]:
    """Runs by task; damaged files are skipped."""
    found = [trial for path in (folder / SWEEP_RESULTS).glob("*.json") if (trial := _trial(path)) is not None]
    found.sort(key=lambda one: (one.task, one.number or 0, one.name))
    return [_of_task(task, list(every)) for task, every in itertools.groupby(found, key=lambda one: one.task)]


def _trial(path: Path) -> Trial | None:
    content = read_object(path) or {}
    name, task = content.get("name"), content.get("task")
    if not isinstance(name, str) or not isinstance(task, str):
        return None
    state = FAILED if content.get("error") else PRUNED if content.get("pruned") else DONE
    number = _DRAWN.search(name)
    varying, metrics = mapping(content, "varying"), mapping(content, "metrics")
    metric = content.get("metric")
    place = int(number[1]) if number else None
    return Trial(name, task, place, varying, metrics, state, metric if isinstance(metric, str) else "")


def _of_task(task: str, every: Sequence[Trial]) -> Trials:
    return Trials(task, next(_selecting(every), "")[len(_EVALUATED) :], every)


def _selecting(every: Sequence[Trial]) -> Iterator[str]:
    """The metrics that select, then measured ones where higher is better."""
    yield from (trial.metric for trial in every if trial.metric)
    for name in itertools.chain.from_iterable(trial.metrics for trial in every):
        if name.startswith(_EVALUATED) and not ranking.is_cost(name):
            yield name


def text(value: Any) -> str:
    """A value of a setting, short enough for a chart."""
    said = f"{value:.3g}" if isinstance(value, float) else str(value)
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"
