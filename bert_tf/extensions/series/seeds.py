"""One training with several seeds, and the spread of its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from bert_tf import run_layout
from bert_tf.errors import FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.extension import Driven
from bert_tf.extensions.series import SeriesSettings, driver, table
from bert_tf.extensions.series.driver import Run, Trained
from bert_tf.io.log_form import log
from bert_tf.runtime import cluster
from bert_tf.settings import defaults
from bert_tf.tasks.base import Task
from bert_tf.training import results as run_results
from bert_tf.training.run_spec import RunSpec


@dataclasses.dataclass(frozen=True)
class SeedResult:
    """Result of one seed on dev."""

    seed: int
    folder: str  # of the run, relative to the series
    steps: int
    metrics: Mapping[str, float]  # by name, including eval_loss
    collapsed: str | None  # why nothing was learned; None if it was


def drive(config: RunSpec, *, environment: Mapping[str, str], task: Task | None = None) -> Driven:
    """Runs a run with each of its seeds, and writes a page of all; finished seeds survive an error."""
    folder = config.output.folder
    done = fine_tune_seeds(config, environment=environment, task=task)
    run = done.first.run if done.first else None
    page = "" if _holds_run(folder) else f", their page in {folder / run_layout.PAGE}"
    from bert_tf.extensions.series.runs import SeedRuns

    return Driven(
        SeedRuns(folder.absolute(), done.results, config, run.task if run else task, run.data.data_dir if run else None),
        table.summary(done.results) if done.stopped_by is None else (),
        len(done.results),
        f"the runs are in {folder}{page}",
        done.stopped_by,
    )


def fine_tune_seeds(config: RunSpec, *, environment: Mapping[str, str], task: Task | None = None) -> Trained[SeedResult]:
    folder = config.output.folder
    with run_folder.writing(folder):
        slots = driver.slots(config, task, environment)
        if slots:
            _check(config, environment)
            done = driver.on_slots(_runs(config, task), folder, SeedResult, slots, str(config.data.task_name))
        else:
            done = train_each(config, environment=environment, task=task)
        _refuse_changed(folder, done.results)
        if done.stopped_by is None:
            run_results.write_page(folder)
    return done


def _refuse_changed(folder: Path, results: Sequence[SeedResult]) -> None:
    """Raises OutputError if seeds were trained on different rows: each reads the files anew."""
    if len({run_folder.trained(folder / result.folder).get("train_examples_sha256") for result in results}) > 1:
        raise OutputError(f"{folder}: its seeds were trained on different rows, as the data changed; name another --output_dir")


def train_each(config: RunSpec, *, environment: Mapping[str, str], task: Task | None = None) -> Trained[SeedResult]:
    """Runs a run with each seed, in this process; writes seeds.json and seeds.tsv after each."""
    _check(config, environment)
    return driver.in_turn(_runs(config, task), config.output.folder, SeedResult, environment)


def _check(config: RunSpec, environment: Mapping[str, str]) -> None:
    if not config.actions.do_eval:
        raise FlagError("--seeds compares evaluations: add --do_eval")
    if cluster.read_cluster(environment) is not None:
        raise FlagError("--seeds is for one machine: start a run of several machines once for each --seed")
    folder, wanted = config.output.folder, {f"seed-{seed}" for seed in config.extensions.series.seed_numbers}
    driver.warn_of_earlier_default(config, "seed-*")
    begun = {path.parent.name for path in folder.glob(f"seed-*/{run_layout.RECORD}")}
    if not begun & wanted:
        run_folder.refuse_run(folder, "the seeds")
    elif _holds_run(folder):
        log.warning("%s: also holds another run, whose page takes the place of that of the seeds", folder)
    if others := sorted(begun - wanted):
        log.warning(
            "%s: has runs of other seeds, which its page counts too, and seeds.tsv does not: %s", folder, ", ".join(others)
        )


def _holds_run(folder: Path) -> bool:
    return (folder / run_layout.RECORD).exists()


def _runs(config: RunSpec, task: Task | None) -> list[Run]:
    seeds, runs = config.extensions.series.seed_numbers, []
    for number, seed in enumerate(seeds, start=1):
        folder = str(config.output.folder / f"seed-{seed}")
        of_seed = config.replaced({**defaults(SeriesSettings), "seed": seed, "output_dir": folder})
        runs.append(Run(seed, of_seed, f"Seed {seed}, {number} of {len(seeds)}", lambda: task))
    return runs
