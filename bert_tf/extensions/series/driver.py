"""Trains runs that differ in a seed or a fold only: on the slots of this machine, or in turn in this process.

Each is a complete run in a folder of its own, so that an interrupted series can resume.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from bert_tf import extension, run_layout
from bert_tf.errors import FlagError, TrainingError
from bert_tf.estimator import run as run_of_model
from bert_tf.extensions.series import table
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Task
from bert_tf.tasks.registry import is_registered
from bert_tf.training.fine_tune import FineTuned, fine_tune
from bert_tf.training.run_spec import RunSpec

if TYPE_CHECKING:
    from bert_tf.extensions.sweep.leader import Slot
    from bert_tf.extensions.sweep.table import Result

R = TypeVar("R", bound=table.RunResult)

_ON_SLOTS = {"sweep", "report"}  # extensions that train several runs at a time


class Run(NamedTuple):
    number: int  # its seed, or that of its fold
    config: RunSpec
    title: str  # in the log
    task: Callable[[], Task | None]  # made when it is trained in this process
    varying: Mapping[str, Any] = {}  # besides the seed
    alone: Callable[..., FineTuned] | None = None  # trains it in a process of its own, see `sweep.plan.PlannedRun`

    @property
    def name(self) -> str:
        return self.config.output.folder.name


@dataclasses.dataclass(frozen=True)
class Trained(Generic[R]):
    results: tuple[R, ...]  # of finished runs, in order
    stopped_by: signal.Signals | None = None  # the same job can resume
    first: FineTuned | None = None  # None if it was stopped, or trained in another process


def warn_of_earlier_default(config: RunSpec, runs: str) -> None:
    """Warns of runs (a pattern) in the folder of a single run, which was the default of series in earlier versions."""
    if "output_dir" in config.given:
        return
    folder, records = config.output.folder, f"{runs}/{run_layout.RECORD}"
    earlier = folder.with_name(folder.name.rpartition("-")[0])
    if any(earlier.glob(records)) and not any(folder.glob(records)):
        log.warning("%s: holds the runs %s of an earlier version; --output_dir=%s continues them", earlier, runs, earlier)


def slots(config: RunSpec, task: Task | None, environment: Mapping[str, str]) -> Sequence[Slot]:
    """Slots for the runs, by the extension sweep; none if they are trained in turn in this process.

    None for a task in memory or of this program, with flags that place a run on devices, or if only one run would fit.
    FlagError if several are asked for a task that this program has registered.
    """
    asked, name = config.extensions.series.slots, str(config.data.task_name)
    is_own = task is None and is_registered(name)
    if is_own and (asked or 1) > 1:
        raise FlagError(f"--slots={asked}: this program has registered {name}, which other processes do not know; leave it out")
    if task is not None or is_own or not config.actions.do_train or (asked is None and config.devices.are_chosen):
        return ()
    if (asked or 1) == 1 and not extension.installed().keys() >= _ON_SLOTS:
        return ()
    for name in sorted(_ON_SLOTS):
        extension.needed(name, f"--slots={asked}")
    from bert_tf.extensions.sweep import leader

    available = leader.slots(asked, environment)
    return available if len(available) > 1 else ()


def in_turn(
    runs: Iterable[Run],
    folder: Path,
    kind: Callable[..., R],
    environment: Mapping[str, str],
    each: Callable[[FineTuned], object] = lambda _: None,
) -> Trained[R]:
    """Trains runs in this process; writes the results so far after each.

    A finished run is evaluated again, not trained: it has no steps left.
    """
    results: list[R] = []
    first: FineTuned | None = None
    for run in runs:
        log.info("***** %s *****", run.title)
        if not run.config.actions.do_train:
            run_of_model.require_checkpoint(run.config.output.folder)  # the model of --init_checkpoint would serve for all
        done = fine_tune(run.config, environment=environment, task=run.task())
        if done.stopped_by is not None:
            return Trained(tuple(results), done.stopped_by, first)
        first = first or done
        each(done)
        results.append(kind(run.number, run.name, done.step, done.finite_metrics, done.collapsed))
        # A task that the models were not trained on gets its own table.
        within = done.run.results_dir.relative_to(done.output_dir)
        table.write(atomic.make_folder(folder / within), results)
    return Trained(tuple(results), None, first)


def on_slots(runs: Sequence[Run], folder: Path, kind: Callable[..., R], slots: Sequence[Slot], task: str) -> Trained[R]:
    """Trains runs in processes of their own; writes the results so far after each.

    TrainingError if a run failed, when the others have ended.
    """
    from bert_tf.extensions.sweep import leader
    from bert_tf.extensions.sweep import table as of_sweep
    from bert_tf.extensions.sweep.plan import PlannedRun

    numbers = {run.name: run.number for run in runs}
    planned = [PlannedRun(run.name, task, run.config.train.seed, run.varying, run.config, 1.0, train=run.alone) for run in runs]

    def finished(results: Iterable[Result | None]) -> tuple[R, ...]:
        successful = (result for result in results if result and not result.error)
        return tuple(kind(numbers[r.name], r.name, r.steps, r.metrics, r.collapsed) for r in successful)

    def write_table(results: Sequence[Result]) -> None:
        if so_far := finished(results):
            table.write(folder, so_far)

    log.info("***** %d runs, %d at a time; their logs are in %s *****", len(runs), len(slots), folder / of_sweep.LOGS)
    of_sweep.forget(folder, [run.name for run in planned])  # they are of an earlier command, perhaps with other settings
    try:
        outcomes = leader.Leader(planned, folder, slots, keep=write_table).lead()
    except KeyboardInterrupt:
        return Trained(finished(of_sweep.read_result(folder, run.name) for run in runs), signal.SIGINT)
    errors = [f"{result.name}: {result.error}" for result in outcomes if result.error]
    if errors:
        raise TrainingError(errors[0] if len(errors) == 1 else f"{len(errors)} of {len(outcomes)} runs failed; {errors[0]}")
    return Trained(finished(outcomes))
