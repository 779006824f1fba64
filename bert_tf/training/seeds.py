"""Runs a job with several seeds, one after the other in one process, and reports the spread of results.

Each seed is a complete run in a folder of its own, so that an interrupted series can resume.
"""

from __future__ import annotations

import dataclasses
import math
import signal
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from bert_tf.errors import FlagError
from bert_tf.estimator import run, run_folder
from bert_tf.io import atomic, documents, text_table
from bert_tf.io.log_form import log
from bert_tf.runtime import cluster
from bert_tf.tasks.base import Task
from bert_tf.training import results as run_results
from bert_tf.training.fine_tune import FineTuned, fine_tune
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


class Spread(NamedTuple):
    mean: float
    sd: float | None  # sample standard deviation; None for one value
    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """Result of one seed on dev."""

    seed: int
    folder: str  # of the run, relative to the series
    steps: int
    metrics: Mapping[str, float]  # by name, including eval_loss
    collapsed: str | None  # why nothing was learned; None if it was


@dataclasses.dataclass(frozen=True)
class Series:
    first: FineTuned | None  # result of the first seed; None if it was stopped
    results: tuple[SeedResult, ...]  # of finished seeds, in order
    stopped_by: signal.Signals | None = None  # signal; the same job can resume


def fine_tune_seeds(config: FineTuneConfig, *, environment: Mapping[str, str], task: Task | None = None) -> Series:
    """Runs a job with each of its seeds, see `fine_tune`, and writes a page of all; finished seeds survive an error."""
    with run_folder.writing(config.output.folder):
        series = train_each(config, environment=environment, task=task)
        if series.stopped_by is None:
            run_results.write_page(config.output.folder)
    return series


def train_each(config: FineTuneConfig, *, environment: Mapping[str, str], task: Task | None = None) -> Series:
    """Runs a job with each seed; writes seeds.json and seeds.tsv after each.

    A finished seed is evaluated again, not trained: its run has no steps left.
    """
    if not config.actions.do_eval:
        raise FlagError("--seeds compares evaluations: add --do_eval")
    if cluster.read(environment) is not None:
        raise FlagError("--seeds is for one machine: start a job of several machines once for each --seed")
    seeds, first = config.train.seed_numbers, None
    results: list[SeedResult] = []
    for number, seed in enumerate(seeds, start=1):
        log.info("***** Seed %d, %d of %d *****", seed, number, len(seeds))
        single = _of_seed(config, seed)
        if not single.actions.do_train:
            run.require_checkpoint(single.output.folder)  # one model of --init_checkpoint would be that of all seeds
        done = fine_tune(single, environment=environment, task=task)
        if done.stopped_by is not None:
            return Series(first, tuple(results), done.stopped_by)
        first = first or done
        results.append(SeedResult(seed, f"seed-{seed}", *outcome(done)))
        # Of a task that the models were not trained on there is a table of its own.
        within = done.job.results_dir.relative_to(done.output_dir)
        write(atomic.make_folder(config.output.folder / within), results)
    return Series(first, tuple(results))


def _of_seed(config: FineTuneConfig, seed: int) -> FineTuneConfig:
    folder = str(config.output.folder / f"seed-{seed}")
    return config.replaced({"seed": seed, "seeds": None, "output_dir": folder})


def outcome(done: FineTuned) -> tuple[int, dict[str, float], str | None]:
    """Returns the steps and metrics of a run, and why nothing was learned, if so."""
    metrics = {f"eval_{name}": value for name, value in sorted(done.metrics.items()) if math.isfinite(value)}
    collapsed = [f"{split}: {found.collapsed}" for split, found in sorted(done.evaluations.items()) if found.collapsed]
    return done.step, metrics, "; ".join(collapsed) or None


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
        why = " ".join((r.collapsed or "").split())  # labels of one's own may hold tabs
        rows.append([str(getattr(r, name)), *(str(r.metrics[metric]) for metric in metrics), str(r.steps), why])
    atomic.write_text(folder / f"{name}s.tsv", "".join("\t".join(row) + "\n" for row in rows))


def _name(results: Sequence[RunResult]) -> str:
    return dataclasses.fields(cast(Any, results[0]))[0].name


def table(results: Sequence[RunResult]) -> list[str]:
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
