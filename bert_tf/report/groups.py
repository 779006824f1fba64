"""Groups of runs: the runs of a seed series share one line in charts, and their mean is meaningful."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_tf import documents
from bert_tf.report.run_files import Run

_SEED = "seed"


@dataclasses.dataclass(frozen=True)
class Group:
    """A run, or the runs of a seed series."""

    name: str
    runs: Sequence[Run]  # at least one

    @property
    def task(self) -> str:
        return self.runs[0].task


def of(runs: Sequence[Run]) -> list[Group]:
    """Runs in order; those of a series are one group if only the seed differs."""
    by_series: dict[Path, list[Run]] = {}
    for run in runs:
        by_series.setdefault(run.series or run.folder, []).append(run)
    return [group for same in by_series.values() for group in _groups(same)]


def _groups(runs: Sequence[Run]) -> list[Group]:
    if len(runs) > 1 and runs[0].training and len(set(map(_setting, runs))) == 1:
        return [Group(_series_name(runs[0]), runs)]
    return [Group(run.name, [run]) for run in runs]


def _series_name(run: Run) -> str:
    above, _, _ = run.name.rpartition("/")
    return above or (run.series.name if run.series else run.name)


@dataclasses.dataclass(frozen=True)
class Sample:
    """Runs that differ only in the seed, so that a mean is meaningful."""

    name: str  # the runs' names, or that of their series
    runs: Sequence[str]  # names of two or more


def samples(runs: Sequence[Run]) -> list[Sample]:
    same: dict[str, list[Run]] = {}
    for run in runs:
        if run.training:
            same.setdefault(_setting(run), []).append(run)
    return [Sample(_name(found), [run.name for run in found]) for found in same.values() if _seeds(found) == len(found) > 1]


def _seeds(runs: Iterable[Run]) -> int:
    return len({documents.to_json(run.training.get(_SEED)) for run in runs})


def _name(runs: Sequence[Run]) -> str:
    (series, *others) = {run.series for run in runs}
    return ", ".join(run.name for run in runs) if others or series is None else _series_name(runs[0])


def _setting(run: Run) -> str:
    return documents.to_json({key: value for key, value in run.training.items() if key != _SEED}, sort_keys=True)
