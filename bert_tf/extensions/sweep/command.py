"""Sweep: trains tasks x seeds x settings on every device, and tabulates the results."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.errors import BertError, FlagError
from bert_tf.extensions.sweep import TABLE
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.profiling.wall_clock import TURN
from bert_tf.settings import Setting, changed, read_settings, setting

if TYPE_CHECKING:
    from bert_tf.extensions.sweep.plan import PlannedRun, SweepFile
    from bert_tf.extensions.sweep.table import Result


SEARCHES = GRID, RANDOM, TPE = "grid", "random", "tpe"
LAUNCHERS = RAY, SLURM = "ray", "slurm"
_OF_LAUNCHERS = ("launch", "nodes", "slurm")
_OF_SEARCHES = ("trials", "budget", "with_grid")
_MOST_HELD_OUT = 0.9
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}


@dataclasses.dataclass(frozen=True)
class SweepSettings:
    file: str = setting(
        None,
        "sweep file: tasks, seeds, settings (docs/sweeps.md)",
        positional=True,
        required=True,
        refuse_missing=files.refuse_missing,
    )
    output_dir: str = setting(None, "folder for the runs and their table", required=True, written=True)
    slots: int | None = setting(
        None, "runs at a time; default: one for each GPU, or for each core with 4 GB of memory", lowest=1, highest=1000
    )
    search: str = setting(
        "grid", "grid: each combination of the lists; random or tpe (Optuna): draw from lists and ranges", choices=SEARCHES
    )
    trials: int = setting(20, "with --search=random or tpe: runs for each task", lowest=1, highest=100_000)
    budget: str | None = setting(None, "with --search=random or tpe: time after which no run starts, as 2h, 30m or 90s")
    with_grid: bool = setting(
        False, "with --search=random or tpe: train the published grid first, within --trials, and compare (docs/sweeps.md)"
    )
    hold_out: float = setting(
        0.0, "share of dev examples, up to 0.9, to hold out from selection; the table has metrics on them too", lowest=0.0
    )
    spread: bool = setting(False, "give a run several GPUs that would idle; rounding differs with their number")
    from_mnli: bool = setting(False, "start RTE, MRPC and STS-B from the model of MNLI with the same seed and settings")
    launch: str | None = setting(
        None, "ray: train on each node of a Ray cluster; slurm: submit a Slurm array; all see --output_dir", choices=LAUNCHERS
    )
    nodes: int | None = setting(None, "with --launch=slurm: elements of the array", lowest=1, highest=10_000)
    slurm: str | None = setting(None, "with --launch=slurm: options of sbatch, as '--partition=gpu --gpus-per-node=4'")


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    Attributes:
      folder: folder of the runs.
      table: sweep.tsv, a row for each run.
      results: one per run, in the order of the file; empty for a submitted Slurm array.
    """

    folder: Path
    table: Path
    results: tuple[Result, ...]


@takes(SweepSettings)
def sweep(file: str | os.PathLike[str], *, output_dir: str | os.PathLike[str] | None = None, **settings: Any) -> Sweep:
    """Trains the runs of a sweep file; as `python -m bert_tf sweep`.

    Runs that a stopped or killed call left are continued by the same call.

    Args:
      file: sweep file, YAML or JSON, with tasks, seeds and settings.
      output_dir: for the runs and their table.
      **settings: the command's flags, by name.

    Raises:
      BertError: the file is invalid; a failed run has the error in its result.
      KeyboardInterrupt: Ctrl-C; the runs have saved checkpoints.
    """
    return run_all(read_settings(SweepSettings, {"file": file, "output_dir": output_dir, **settings}))


def run_all(settings: SweepSettings) -> Sweep:
    extension.needed("report", "sweep")
    from bert_tf.estimator import run_folder
    from bert_tf.extensions.sweep import plan, score, slurm_launch, table
    from bert_tf.training import results as run_results

    folder, is_grid = Path(settings.output_dir), settings.search == GRID
    run_folder.refuse_run(folder, "the sweep")
    file = dataclasses.replace(plan.read_sweep_file(settings.file), from_mnli=settings.from_mnli, hold_out=settings.hold_out)
    _check(settings, file)
    if settings.launch == SLURM:
        slurm_launch.refuse_unwritable(folder.absolute())
    runs, drawn = (plan.runs(file, folder, os.environ), {}) if is_grid else ([], _drawn(settings, file))
    fixed = {**file.fixed, "from_mnli": settings.from_mnli, "hold_out": settings.hold_out}
    table.keep_settings(folder, fixed, plan.inputs(file, os.environ))
    table.refuse_others(folder, runs)
    table.forget(folder, [run.name for run in runs], failures=True)
    if settings.launch == SLURM:
        print(slurm_launch.submit(_command(settings), folder.absolute(), settings.nodes or 1, settings.slurm))
        return Sweep(folder, folder / TABLE, ())
    results = _led(settings, file, runs, drawn)
    _warn_if_changed(folder, fixed, file)
    score.submit(folder, results)
    with TURN:
        run_results.write_page(folder)
    return Sweep(folder, table.write_table(folder, results), tuple(results))


def _warn_if_changed(folder: Path, fixed: Mapping[str, Any], file: SweepFile) -> None:
    """Each run has read its files anew; those that began before an edit have read others than those that began after it."""
    from bert_tf.extensions.sweep import plan, table

    try:
        table.keep_settings(folder, fixed, plan.inputs(file, os.environ))
    except BertError as error:
        log.warning("while the runs trained, what they read may have changed, and results may be of different data: %s", error)


def _check(settings: SweepSettings, file: SweepFile) -> None:
    if settings.hold_out > _MOST_HELD_OUT:
        raise FlagError(f"--hold_out={settings.hold_out:g}: must be at most {_MOST_HELD_OUT}, or the search sees too little")
    if settings.hold_out and "threshold" in {**file.fixed, **file.grid}:
        raise FlagError("--hold_out: dev is measured without a threshold, so leave out threshold; choose one for the best run")
    explicit = [f"--{name}" for name in _OF_SEARCHES if getattr(settings, name) != getattr(SweepSettings, name)]
    if explicit and settings.search == GRID:
        raise FlagError(f"{explicit[0]} belongs to --search=random or --search=tpe")
    if settings.from_mnli and settings.search != GRID:
        raise FlagError("--from_mnli belongs to a grid, without --search: trials have no settings in common")
    if settings.spread and settings.search != GRID:
        raise FlagError("--spread belongs to a grid: each run of a search has one slot")
    if settings.budget is not None:
        _seconds(settings.budget)
    if (settings.launch == SLURM) != bool(settings.nodes) or (settings.slurm and settings.launch != SLURM):
        raise FlagError("--launch=slurm needs --nodes; --nodes and --slurm belong to --launch=slurm")


def _drawn(settings: SweepSettings, file: SweepFile) -> dict[str, Any]:
    """Arguments of a search, besides file and folder."""
    if not (file.grid or file.ranges):
        raise FlagError(f"--search={settings.search}: settings have no list or range to draw from; leave out --search")
    if len(file.seeds) > 1:
        log.warning("--search=%s: trials have the seed %d, the first of %d", settings.search, file.seeds[0], len(file.seeds))
    seconds = None if settings.budget is None else _seconds(settings.budget)
    from bert_tf.extensions.sweep import published  # imports TensorFlow

    return {
        "sampler": settings.search,
        "trials": settings.trials,
        "seconds": seconds,
        "environment": os.environ,
        "first": published.points(file, settings.trials) if settings.with_grid else (),
    }


def _led(settings: SweepSettings, file: SweepFile, runs: Sequence[PlannedRun], drawn: Mapping[str, Any]) -> list[Result]:
    """Trains the runs on this machine, or on the nodes of a cluster."""
    from bert_tf.extensions.sweep import leader, ray_launch, table
    from bert_tf.extensions.sweep.search import Search

    folder = Path(settings.output_dir)
    if settings.launch == RAY:
        return ray_launch.lead(_command(settings), folder.absolute(), [run.name for run in runs], file.tasks)
    search = Search(file, folder, **drawn) if drawn else None
    if search is not None:
        table.forget(folder, search.begun, failures=True)
    return leader.Leader(runs, folder, leader.slots(settings.slots, os.environ), search, spread=settings.spread).lead()


def _command(settings: SweepSettings) -> list[str]:
    """Python's arguments on each machine: this sweep, without a launcher."""
    flags = {name: value for name, value in changed(settings).items() if name not in ("file", *_OF_LAUNCHERS)}
    flags["output_dir"] = os.path.abspath(settings.output_dir)
    return ["-m", "bert_tf", "sweep", os.path.abspath(settings.file), *(f"--{name}={value}" for name, value in flags.items())]


def _seconds(budget: str) -> float:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([hms])", budget, re.ASCII)
    if not match:
        raise FlagError(f"--budget={budget}: write hours, minutes or seconds, as 2h, 30m or 90s")
    return float(match[1]) * _SECONDS[match[2]]


def _plan(settings: SweepSettings, tokens_per_second: float | None) -> int:
    """Prints how long the grid takes; nothing is trained or written."""
    extension.needed("report", "sweep")
    from bert_tf.extensions.sweep import plan, schedule

    file = dataclasses.replace(plan.read_sweep_file(settings.file), from_mnli=settings.from_mnli)
    _check(settings, file)
    if settings.search != GRID:
        raise FlagError("--plan: is for the lists of a grid, without --search")
    runs = plan.runs(file, Path(settings.output_dir), os.environ)
    from bert_tf.extensions.sweep import leader, table  # the first imports TensorFlow

    slots = settings.slots or len(leader.slots(None, os.environ))
    speed = tokens_per_second or table.tokens_per_second(Path(settings.output_dir), runs)
    print("\n".join(schedule.report(runs, slots, spread=settings.spread, tokens_per_second=speed)))
    return 0


def _run(call: Call) -> int:
    if call.own["plan"]:
        return _plan(call.settings, call.own["tokens_per_second"])
    if call.own["tokens_per_second"] is not None:
        raise FlagError("--tokens_per_second belongs to --plan")
    done = run_all(call.settings)
    if call.settings.launch == SLURM:
        return 0
    from bert_tf.extensions.sweep import published, score, table  # the first imports TensorFlow
    from bert_tf.extensions.sweep.ray_launch import RUNS_FAILED

    compared = published.notes(done.results, done.folder) if call.settings.with_grid else ()
    print("\n".join([*table.summary(done.results, done.folder), *compared]))
    glue = score.line(done.results)
    if glue:
        print(glue)
    errors = [result for result in done.results if result.error]
    if errors:
        raise FlagError(f"{len(errors)} of {len(done.results)} {RUNS_FAILED}: {errors[0].name}: {errors[0].error}")
    return 0


COMMAND = Command(
    "Trains tasks x seeds x settings on every device, with one table (docs/sweeps.md).",
    SweepSettings,
    _run,
    example="python -m bert_tf sweep sweep.yaml --output_dir=out/sweep",
    first=("output_dir", "slots", "search", "trials", "plan"),
    own=(
        Setting("plan", bool, False, "print how long the grid takes on --slots; train nothing"),
        Setting(
            "tokens_per_second",
            float,
            None,
            "with --plan: training speed of a slot; default: that of the runs that are done",
            lowest=1.0,
        ),
    ),
    stopped="stopped; the same command continues",
)
