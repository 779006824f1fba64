"""Runs a job with several seeds, on the slots of this machine or in this process, and reports the spread of results.

Each seed is a complete run in a folder of its own, so that an interrupted series can resume.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping, Sequence

from bert_tf.errors import FlagError
from bert_tf.estimator import run, run_folder
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.runtime import cluster
from bert_tf.settings import defaults
from bert_tf.sweeps import series
from bert_tf.sweeps.leader import Slot
from bert_tf.sweeps.plan import PlannedRun
from bert_tf.sweeps.table import Result
from bert_tf.tasks.base import Task
from bert_tf.training import results as run_results
from bert_tf.training.fine_tune import FineTuned, fine_tune
from bert_tf.training.fine_tune_config import FineTuneConfig
from bert_tf.training.settings import SeedSettings


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
    first: FineTuned | None  # result of the first seed; None if it was stopped, or trained in another process
    results: tuple[SeedResult, ...]  # of finished seeds, in order
    stopped_by: signal.Signals | None = None  # signal; the same job can resume


def fine_tune_seeds(config: FineTuneConfig, *, environment: Mapping[str, str], task: Task | None = None) -> Series:
    """Runs a job with each of its seeds, see `fine_tune`, and writes a page of all; finished seeds survive an error."""
    with run_folder.writing(config.output.folder):
        slots = series.slots(config, task, environment)
        done = _on_slots(config, slots, environment) if slots else train_each(config, environment=environment, task=task)
        if done.stopped_by is None:
            run_results.write_page(config.output.folder)
    return done


def train_each(config: FineTuneConfig, *, environment: Mapping[str, str], task: Task | None = None) -> Series:
    """Runs a job with each seed, in this process; writes seeds.json and seeds.tsv after each.

    A finished seed is evaluated again, not trained: its run has no steps left.
    """
    _check(config, environment)
    seeds, first = config.train.seed_numbers, None
    results: list[SeedResult] = []
    for number, seed in enumerate(seeds, start=1):
        log.info("***** Seed %d, %d of %d *****", seed, number, len(seeds))
        single = _of_seed(config, seed)
        if not single.actions.do_train:
            run.require_checkpoint(single.output.folder)  # the model of --init_checkpoint would serve for all seeds
        done = fine_tune(single, environment=environment, task=task)
        if done.stopped_by is not None:
            return Series(first, tuple(results), done.stopped_by)
        first = first or done
        results.append(SeedResult(seed, _name(seed), done.step, done.finite_metrics, done.collapsed))
        # A task that the models were not trained on gets its own table.
        within = done.job.results_dir.relative_to(done.output_dir)
        series.write(atomic.make_folder(config.output.folder / within), results)
    return Series(first, tuple(results))


def _check(config: FineTuneConfig, environment: Mapping[str, str]) -> None:
    if not config.actions.do_eval:
        raise FlagError("--seeds compares evaluations: add --do_eval")
    if cluster.read(environment) is not None:
        raise FlagError("--seeds is for one machine: start a job of several machines once for each --seed")


def _on_slots(config: FineTuneConfig, slots: Sequence[Slot], environment: Mapping[str, str]) -> Series:
    _check(config, environment)
    folder, name = config.output.folder, str(config.data.task_name)
    runs = [PlannedRun(_name(seed), name, seed, {}, _of_seed(config, seed), 1.0) for seed in config.train.seed_numbers]
    return Series(None, *series.on_slots(runs, folder, slots, _of_result))


def _of_result(found: Result) -> SeedResult:
    return SeedResult(found.seed, found.name, found.steps, found.metrics, found.collapsed)


def _name(seed: int) -> str:
    return f"seed-{seed}"


def _of_seed(config: FineTuneConfig, seed: int) -> FineTuneConfig:
    folder = str(config.output.folder / _name(seed))
    return config.replaced({**defaults(SeedSettings), "seed": seed, "output_dir": folder})
