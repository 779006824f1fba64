"""Results of the runs of a sweep: a file for each, their table, and means over seeds."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.extensions.report.run_files import is_number, mapping, read_object
from bert_tf.extensions.sweep import RESULTS, SETTINGS, TABLE, plan, trials
from bert_tf.extensions.sweep.plan import PlannedRun
from bert_tf.extensions.sweep.trials import Combination
from bert_tf.io import atomic, documents, files, text_table
from bert_tf.io.log_form import log

_ENDING = ".json"  # of a result
_INPUTS = "sha256"  # in the settings: of what runs read
EXIT_DONE, EXIT_FAILED, EXIT_TAKEN, EXIT_STOPPED = 0, 1, 3, 130  # exit statuses of the process of a run
LOGS = "logs"  # folder beside those of the runs
_OPTIONAL, _NONE = ("95 %", "held out"), "-"  # columns of the summary that are left out if all their cells are _NONE


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# What each field of a result's file may be.
_OF_RESULT: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "task", "metric"), _is_text),
    **dict.fromkeys(("seed", "steps"), lambda value: isinstance(value, int) and not isinstance(value, bool)),
    **dict.fromkeys(("collapsed", "error"), lambda value: value is None or _is_text(value)),
    "varying": lambda value: isinstance(value, dict),
    "metrics": lambda value: isinstance(value, dict) and all(map(is_number, value.values())),
    "seconds": is_number,
    "pruned": lambda value: isinstance(value, bool),
}


_REQUIRED = {"name", "task", "seed", "varying"}


@dataclasses.dataclass(frozen=True)
class Result:
    name: str
    task: str
    seed: int
    varying: Mapping[str, Any]  # settings that differ between runs
    steps: int = 0
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of dev, as eval_accuracy; the first selects
    seconds: float = 0.0  # of the last process that trained it
    metric: str = ""  # the one that compares runs of the task, as eval_accuracy
    collapsed: str | None = None  # why nothing was learned; None if it was
    pruned: bool = False  # stopped by the search
    error: str | None = None  # why there is no result

    @property
    def worth(self) -> float | None:
        """Value of the metric; None if the run has none."""
        return self.metrics.get(self.metric)


def result(run: PlannedRun, **values: Any) -> Result:
    return Result(run.name, run.task, run.seed, run.varying, metric=run.metric, **values)


def failed(run: PlannedRun, error: str) -> Result:
    return result(run, error=error)


def log_file(folder: Path, name: str) -> Path:
    return folder / LOGS / f"{name}.txt"


def keep_settings(folder: Path, fixed: Mapping[str, Any], inputs: Mapping[str, str]) -> None:
    """Notes the settings that all runs share, and digests of what they read; OutputError if the folder's runs have others."""
    path = atomic.make_folder(folder) / SETTINGS
    try:
        earlier = documents.parse_json(files.read_text(path)) if path.exists() else {**fixed, _INPUTS: {}}
        read = earlier.pop(_INPUTS, {})
        names = [name for name in {**earlier, **fixed} if earlier.get(name) != fixed.get(name)]
        others = [name for name, digest in inputs.items() if read.get(name, digest) != digest]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable; name another --output_dir") from error
    if names:
        changes = ", ".join(f"{name} was {earlier.get(name)}, now {fixed.get(name)}" for name in names)
        raise OutputError(f"{folder}: holds runs with other settings ({changes}); name another --output_dir")
    if others and any(is_done(folder, name) for name in finished(folder)):
        raise OutputError(f"{folder}: {others[0]} has changed since its runs were trained; name another --output_dir")
    noted = {**fixed, _INPUTS: {**read, **inputs}}
    if noted != {**earlier, _INPUTS: read} or not path.exists():
        atomic.write_text(path, documents.to_json(noted, indent=1) + "\n")


def refuse_others(folder: Path, runs: Sequence[PlannedRun]) -> None:
    """Raises OutputError if a result is of other settings by the same name: names have four digits of a number."""
    for run in runs:
        known = read_result(folder, run.name)
        if known is not None and known.varying != run.varying:
            raise OutputError(f"{folder}: {run.name} is a run of {known.varying}, not {run.varying}; name another --output_dir")


def write(folder: Path, result: Result) -> None:
    path = atomic.make_folder(folder / RESULTS, follows=False) / f"{result.name}{_ENDING}"
    atomic.write_text(path, documents.to_json(dataclasses.asdict(result), indent=1) + "\n")


def read_result(folder: Path, name: str) -> Result | None:
    """Returns the result of a run; None while there is none, also if its file is damaged or another run's.

    Fields of another version of the package are ignored, or have their defaults.
    """
    content = read_object(folder / RESULTS / f"{name}{_ENDING}") or {}
    values = {field: content[field] for field in _OF_RESULT if field in content}
    if values.get("name") != name or not values.keys() >= _REQUIRED:
        return None
    return Result(**values) if all(_OF_RESULT[field](value) for field, value in values.items()) else None


def compared(folder: Path, run: PlannedRun, known: Result, *, drawn: bool) -> Result:
    """A result by the metric of its run, where an earlier version compared runs by another; rewrites its file.

    Raises OutputError if the result lacks the metric, or is of a search, which drew by the other.
    """
    if not (run.metric and known.metric) or known.error or known.metric == run.metric:
        return known
    if drawn or run.metric not in known.metrics:
        raise OutputError(f"{folder}: its runs are compared by {known.metric}, not {run.metric}; name another --output_dir")
    changed = dataclasses.replace(known, metric=run.metric)
    write(folder, changed)
    return changed


def drop_damaged(folder: Path) -> None:
    """Deletes unusable results, as a power cut leaves them: their runs are taken up again."""
    for name in finished(folder):
        path = folder / RESULTS / f"{name}{_ENDING}"
        if read_result(folder, name) is None and not files.missing(path):
            log.warning("%s: damaged; its run is taken up again", path)
            path.unlink(missing_ok=True)


def finished(folder: Path) -> list[str]:
    """Names of the runs that have a result."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return [path[: -len(_ENDING)] for path in os.listdir(folder / RESULTS) if path.endswith(_ENDING)]
    return []


def is_done(folder: Path, name: str) -> bool:
    earlier = read_result(folder, name)
    return earlier is not None and earlier.error is None


def forget(folder: Path, names: Sequence[str], *, failures: bool = False) -> None:
    """Deletes results, or only those of failed runs: a new command trains or tries these again."""
    for name in names:
        earlier = read_result(folder, name) if failures else None
        if not failures or (earlier is not None and earlier.error is not None):
            (folder / RESULTS / f"{name}{_ENDING}").unlink(missing_ok=True)


def tokens_per_second(folder: Path, runs: Sequence[PlannedRun]) -> float | None:
    """Speed of a slot by the runs that are done, in the unit of their costs; None while there are none."""
    measured = [
        (run.cost, known.seconds)
        for run in runs
        if (known := read_result(folder, run.name)) and not known.error and known.seconds > 0
    ]
    return sum(cost for cost, _ in measured) / sum(seconds for _, seconds in measured) if measured else None


def write_table(folder: Path, results: Sequence[Result]) -> Path:
    """Writes sweep.tsv, a row for each run."""
    settings = list(dict.fromkeys(name for result in results for name in result.varying))
    metrics = list(dict.fromkeys(name for result in results for name in result.metrics))
    rows = [["task", "seed", *settings, *metrics, "steps", "collapsed", "pruned", "error", "folder"]]
    for r in results:
        values = [r.varying.get(name, "") for name in settings] + [r.metrics.get(name, "") for name in metrics]
        rows.append(
            [r.task, *map(str, (r.seed, *values, r.steps or "")), r.collapsed or "", "pruned" * r.pruned, r.error or "", r.name]
        )
    path = folder / TABLE
    atomic.write_text(path, "".join("\t".join(map(text_table.cell, row)) + "\n" for row in rows))
    return path


def summary(results: Sequence[Result], folder: Path) -> Iterator[str]:
    """Yields a table of means over seeds of each task's metric, by task and settings: the best first, as on the page."""
    by_name = {result.name: result for result in results}
    rows = [
        _cells(task, combination, [by_name[run.name] for run in combination.runs], folder)
        for task in dict.fromkeys(result.task for result in results)
        for of_task in (trials.of_task(task, [trials.trial_of(vars(result)) for result in results if result.task == task]),)
        for combination in of_task.ranked
    ]
    shown = [name for name in (rows or [{}])[0] if name not in _OPTIONAL or any(row[name] != _NONE for row in rows)]
    yield from text_table.table(shown, [[row[name] for name in shown] for row in rows], left=(0, 1, 2))


def _cells(task: str, settings: Combination, runs: Sequence[Result], folder: Path) -> dict[str, str]:
    """The columns of settings of a task, and of the runs that share them: the seeds."""
    metric = next((run.metric for run in runs if run.metric), "eval_")[len("eval_") :]
    done = [run.name for run in settings.runs if run.state == trials.DONE and f"eval_{metric}" in run.metrics]
    return {
        "task": task,
        "settings": " ".join(plan.assignments(settings.varying)),
        "metric": metric,
        "mean": _NONE if settings.mean is None else f"{settings.mean:.4f}",
        "95 %": _interval([_ends(folder / name, metric, score) for name, score in zip(done, settings.scores)]),
        "sd": _NONE if settings.sd is None else f"{settings.sd:.4f}",
        "held out": f"{statistics.fmean(settings.held_out):.4f}" if settings.held_out else _NONE,
        "runs": str(len(settings.scores)),
        "collapsed": str(settings.collapsed),
        "failed": str(sum(bool(run.error) for run in runs)),
        "seconds": f"{sum(run.seconds for run in runs):.0f}",
    }


def _interval(ends: Sequence[tuple[float, float] | None]) -> str:
    """Means of the ends, as all runs have the same examples; none if a run has none."""
    known = [interval for interval in ends if interval is not None]
    if not known or len(known) < len(ends):
        return _NONE
    return " to ".join(f"{statistics.fmean(side):.3f}" for side in zip(*known))


def _ends(run: Path, metric: str, score: float) -> tuple[float, float] | None:
    """The 95 % interval of a score in the results of a run; None if they are of other examples, or have none."""
    for split in mapping(read_object(run / run_layout.RESULTS) or {}, "splits").values():
        ends = mapping(split, "intervals_95").get(metric) if isinstance(split, dict) and split.get(metric) == score else None
        if isinstance(ends, list) and len(ends) == 2 and all(map(is_number, ends)):
            return ends[0], ends[1]
    return None
