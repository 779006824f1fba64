"""Runs a job with several seeds, one after the other in one process, and reports the spread of results.

Each seed is a complete run in a folder of its own, so that an interrupted series can resume.
"""

from __future__ import annotations

import dataclasses
import math
import signal
from collections.abc import Mapping

from bert_tf import atomic
from bert_tf.errors import FlagError
from bert_tf.estimator import run, run_folder
from bert_tf.jobs import report, seeds_table
from bert_tf.jobs.fine_tune import FineTuned, fine_tune
from bert_tf.jobs.fine_tune_config import FineTuneConfig
from bert_tf.jobs.seeds_table import SeedResult
from bert_tf.log_form import log
from bert_tf.runtime import cluster
from bert_tf.tasks.base import Task


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
            report.at_end(config.output.folder)
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
        results.append(_result(done, seed))
        # Of a task that the models were not trained on there is a table of its own.
        within = done.job.results_dir.relative_to(done.output_dir)
        seeds_table.write(atomic.make_folder(config.output.folder / within), results)
    return Series(first, tuple(results))


def _of_seed(config: FineTuneConfig, seed: int) -> FineTuneConfig:
    folder = str(config.output.folder / folder_name(seed))
    return config.replaced({"seed": seed, "seeds": None, "output_dir": folder})


def folder_name(seed: int) -> str:
    return f"seed-{seed}"


def _result(done: FineTuned, seed: int) -> SeedResult:
    metrics = {f"eval_{name}": value for name, value in sorted(done.metrics.items()) if math.isfinite(value)}
    collapsed = [f"{split}: {found.collapsed}" for split, found in sorted(done.evaluations.items()) if found.collapsed]
    return SeedResult(seed, folder_name(seed), done.step, metrics, "; ".join(collapsed) or None)
