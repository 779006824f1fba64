"""Runs that differ in a seed or a fold only: how they are trained, and the table of their results."""

from __future__ import annotations

import dataclasses
import signal
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from bert_tf.errors import TrainingError
from bert_tf.io import atomic, documents, text_table
from bert_tf.io.log_form import log
from bert_tf.sweeps import leader, table
from bert_tf.sweeps.plan import PlannedRun
from bert_tf.sweeps.table import Result
from bert_tf.tasks.base import Task
from bert_tf.training.fine_tune_config import FineTuneConfig


class RunResult(Protocol):
    """Result of a run of a series: a dataclass whose first field numbers the runs."""

    @property
    def folder(self) -> str:
        """Folder of the run, relative to the series."""

    @property
    def steps(self) -> int:
        """Steps trained."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics by name, including eval_loss."""

    @property
    def collapsed(self) -> str | None:
        """Why nothing was learned; None if it was."""


R = TypeVar("R", bound=RunResult)


class Spread(NamedTuple):
    mean: float
    sd: float | None  # sample standard deviation; None for one value
    lowest: float
    highest: float


def slots(config: FineTuneConfig, task: Task | None, environment: Mapping[str, str]) -> Sequence[leader.Slot]:
    """Slots for the runs; none if they are trained in turn in this process.

    None for a task in memory, with flags that place a run on devices, or if only one run would fit.
    """
    if task is not None or not config.actions.do_train or (config.train.slots is None and config.devices.are_chosen):
        return ()
    found = leader.slots(config.train.slots, environment)
    return found if len(found) > 1 else ()


def on_slots(
    runs: Sequence[PlannedRun], folder: Path, slots: Sequence[leader.Slot], of_result: Callable[[Result], R]
) -> tuple[tuple[R, ...], signal.Signals | None]:
    """Trains runs in processes of their own; writes the results so far after each.

    Returns the results (after a signal, of finished runs) and the signal. Raises TrainingError if a run failed, when the
    others have ended.
    """
    log.info("***** %d runs, %d at a time; their logs are in %s *****", len(runs), len(slots), folder / table.LOGS)
    table.forget(folder, runs)  # they are of an earlier command, perhaps with other settings

    def kept(results: Sequence[Result]) -> None:
        if finished := _finished(results):
            write(folder, list(map(of_result, finished)))

    try:
        found = leader.Leader(runs, folder, slots, keep=kept).lead()
    except KeyboardInterrupt:
        return tuple(map(of_result, _finished(table.read(folder, run.name) for run in runs))), signal.SIGINT
    errors = [f"{result.name}: {result.error}" for result in found if result.error]
    if errors:
        raise TrainingError(errors[0] if len(errors) == 1 else f"{len(errors)} of {len(found)} runs failed; {errors[0]}")
    return tuple(map(of_result, found)), None


def _finished(results: Iterable[Result | None]) -> list[Result]:
    return [result for result in results if result and not result.error]


def spread(values: Sequence[float]) -> Spread:
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, min(values), max(values))


def spreads(results: Sequence[RunResult]) -> dict[str, Spread]:
    return {metric: spread([result.metrics[metric] for result in results]) for metric in results[0].metrics}


def write(folder: Path, results: Sequence[RunResult], **more: Any) -> None:
    """Writes seeds.json and seeds.tsv, or files called by the first field of other results; `more` goes into the former."""
    name = _name(results)
    contents = {
        f"{name}s": [dataclasses.asdict(cast(Any, result)) for result in results],
        "spread": {metric: found._asdict() for metric, found in spreads(results).items()},
        **more,
    }
    atomic.write_text(folder / f"{name}s.json", documents.to_json(contents, indent=2) + "\n")
    metrics = list(results[0].metrics)
    rows = [[name, *metrics, "steps", "collapsed"]]
    for r in results:
        why = " ".join((r.collapsed or "").split())  # custom labels may contain tabs
        rows.append([str(getattr(r, name)), *(str(r.metrics[metric]) for metric in metrics), str(r.steps), why])
    atomic.write_text(folder / f"{name}s.tsv", "".join("\t".join(row) + "\n" for row in rows))


def _name(results: Sequence[RunResult]) -> str:
    return dataclasses.fields(cast(Any, results[0]))[0].name


def summary(results: Sequence[RunResult]) -> list[str]:
    """Lines of a table of all results and their spread."""
    found = spreads(results)
    rows = [[_name(results), *found, "steps", ""]]
    for r in results:
        why = f"collapsed: {r.collapsed}" if r.collapsed else ""
        rows.append([str(getattr(r, _name(results))), *map(_digits, r.metrics.values()), str(r.steps), why])
    for field in Spread._fields:
        rows.append([field, *(_digits(getattr(of_metric, field)) for of_metric in found.values()), "", ""])
    collapsed = sum(result.collapsed is not None for result in results)
    return [*text_table.table(rows[0], rows[1:], left=(len(rows[0]) - 1,)), f"{collapsed} of {len(results)} collapsed"]


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
