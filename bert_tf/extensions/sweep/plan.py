"""The runs of a sweep file: tasks x seeds x settings."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bert_tf.errors import BertError, DataError, FlagError, unknown_name
from bert_tf.io import documents, files
from bert_tf.io.log_form import log
from bert_tf.metrics.values import is_cost
from bert_tf.seeds import seed_numbers
from bert_tf.settings import Setting, checked, unknown_setting
from bert_tf.tasks.base import DEV, TRAIN, Task
from bert_tf.tasks.registry import canonical_name, get_task, is_registered
from bert_tf.training import sources
from bert_tf.training.run_spec import DRIVERS, SETTINGS, RunSpec, configured

if TYPE_CHECKING:  # lazy import of TensorFlow: --plan stays fast
    from bert_tf.training.fine_tune import FineTuned

GLUE = ("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI")
FROM_MNLI = ("RTE", "MRPC", "STS-B")  # start better from a model of MNLI (Liu et al., 2019)
MNLI, AX = "MNLI", "AX"

_KEYS = ("tasks", "seeds", "settings")
_RANGE = ("low", "high", "log")
# Settings that a sweep file must not have, and what to do instead.
_ELSEWHERE = {
    **{name: f"start the {name} without a sweep" for name in DRIVERS},
    "task_name": "write it under tasks",
    **dict.fromkeys(("seed", "seeds"), "write it under seeds"),
    "output_dir": "the sweep names the folders of its runs, below --output_dir",
    **dict.fromkeys(("do_train", "do_eval"), "a sweep trains and evaluates each run"),
}
_ROWS: Mapping[str, Setting] = {row.name: row for row in SETTINGS}
_OF_AVERAGES = {"ema", "average_last"}
_BYTES_PER_TOKEN = 5.0  # of English, with its columns
_SAMPLE = 1 << 16  # bytes from which the length of rows is estimated
_LONG_LINE = 1 << 12  # bytes: longer lines are no rows
_MOST = 10_000  # runs of a grid
_START = 2e4  # cost of starting a run, in trained tokens: some seconds
_FORWARD = 3.0  # cost of a trained token in evaluated ones


@dataclasses.dataclass(frozen=True)
class Range:
    """Values between two numbers, to search."""

    low: float
    high: float
    log: bool = False


@dataclasses.dataclass(frozen=True)
class SweepFile:
    """Contents of a sweep file, and flags of the command that change its runs."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    fixed: Mapping[str, Any]  # settings with one value
    grid: Mapping[str, tuple[Any, ...]]  # with several
    ranges: Mapping[str, Range]
    from_mnli: bool = False  # some tasks start from the model of MNLI
    hold_out: float = 0.0  # share of the dev examples held out from selection

    @property
    def first(self) -> dict[str, Any]:
        """The first value of each list, and the low end of each range: settings of a run without its fixed ones."""
        lows = {name: row.low for name, row in self.ranges.items()}
        return {**{name: values[0] for name, values in self.grid.items()}, **lows}


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    name: str  # of its folder
    task: str
    seed: int
    varying: Mapping[str, Any]  # values of the settings that differ between runs
    config: RunSpec
    cost: float  # estimate, in trained tokens
    after: str | None = None  # name of the run whose model it starts from
    hold_out: float = 0.0  # share of the dev examples held out from selection
    metric: str = ""  # of dev, which compares runs of the task, as eval_accuracy
    # Trains it in its process, where it is sent; None: `training.fine_tune.fine_tune`, with the same arguments.
    train: Callable[..., FineTuned] | None = None

    @property
    def title(self) -> str:
        return " ".join([self.task, *assignments(self.varying), f"seed {self.seed}"])


class _Data(NamedTuple):
    """What a plan knows of a task's data."""

    metric: str  # the task's first, as eval_accuracy
    train: tuple[float, float]  # rows, tokens of a row
    dev: tuple[float, float]


Known = dict[str, _Data]  # by task and settings of its data


def read_sweep_file(path: str | os.PathLike[str]) -> SweepFile:
    """Reads a sweep file, YAML or JSON; DataError names what is wrong."""
    try:
        content = documents.parse_yaml(documents.read_text(path))
    except OSError as error:
        raise DataError(f"cannot be read: {files.reason(error)}", str(path)) from error
    except ValueError as error:
        raise DataError(str(error), str(path)) from error
    try:
        return _parsed(content)
    except BertError as error:
        raise DataError(str(error), str(path)) from error


def _parsed(content: Any) -> SweepFile:
    if not isinstance(content, dict) or "tasks" not in content:
        raise FlagError("write the keys tasks, seeds and settings, as tasks: [MRPC, RTE]")
    for key in content:
        if key not in _KEYS:
            raise FlagError(unknown_name("key", str(key), _KEYS))
    tasks = content["tasks"] if isinstance(content["tasks"], list) else [content["tasks"]]
    if not tasks:
        raise FlagError("tasks: an empty list; name one, as tasks: [MRPC]")
    wanted = [name for task in tasks for name in (GLUE if str(task).lower() == "glue" else (canonical_name(str(task)),))]
    own = next(filter(is_registered, wanted), None)
    if own is not None:
        raise FlagError(
            f"tasks: {own}: this program has registered it, and other processes do not know it; call fine_tune for each run"
        )
    seeds = content.get("seeds", 1)
    text = ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds)
    values = content.get("settings") or {}
    if not isinstance(values, dict):
        raise FlagError("settings: write names and values, as learning_rate: [2e-5, 5e-5]")
    fixed, grid, ranges = {}, {}, {}
    for name, value in values.items():
        if value is None and name not in _ROWS:  # {text_a: title,body} has the keys text_a and body
            raise FlagError(f'settings: {name!r} has no value; in {{ }} one with a comma needs quotes, as text_a: "title,body"')
        row = _row(name)
        if isinstance(value, dict):
            ranges[row.name] = _range(row, value)
        elif isinstance(value, list):
            if not value:
                raise FlagError(f"{name}: an empty list")
            if name == "best_metric" and len(value) > 1:
                raise FlagError("best_metric: a list: it compares the runs, so all have the same one")
            grid[row.name] = tuple(_value(row, item) for item in value)
        else:
            fixed[row.name] = _value(row, value)
    every = {**{name: (value,) for name, value in fixed.items()}, **grid}
    evaluated = all(every.get("eval_every_n_steps", (0,))) or "eval_every_n_steps" in ranges
    for name in (*every, *ranges):
        if _ROWS[name].needs_evaluations and any(every.get(name, (True,))) and not evaluated:
            raise FlagError(f"settings: {name} needs evaluations during training: add eval_every_n_steps")
    for name in (*grid, *ranges):
        if name in _OF_AVERAGES:
            log.warning(
                "%s: runs are compared by their plain weights, which it does not change; sweep.tsv has the averages too", name
            )
    return SweepFile(tuple(dict.fromkeys(wanted)), seed_numbers(text), fixed, grid, ranges)


def _row(name: Any) -> Setting:
    if name in _ELSEWHERE:
        raise FlagError(f"settings: {name}: {_ELSEWHERE[name]}")
    if name not in _ROWS:
        raise FlagError(unknown_setting("setting", str(name), _ROWS))
    return _ROWS[name]


def _value(row: Setting, value: Any) -> Any:
    if row.kind in (int, float) and isinstance(value, str):  # YAML reads 2e-5 as a string
        value = _number(row, value)
    if row.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    value = checked(row, value)
    if row.refuse_missing is not None and isinstance(value, str):
        row.refuse_missing(value)
    return value


def _number(row: Setting, text: str) -> float:
    if (row.name, text) == ("train_batch_size", "auto"):
        raise FlagError("train_batch_size: auto: write fit_memory: true instead")
    try:
        number = float(text)
    except ValueError:
        raise FlagError(f"{row.name}: {text!r} is not a number") from None
    if row.kind is int and not number.is_integer():
        raise FlagError(f"{row.name}: {text!r} is not a whole number")
    return int(number) if row.kind is int else number


def _range(row: Setting, value: Mapping[str, Any]) -> Range:
    if row.kind not in (int, float) or not {"low", "high"} <= value.keys() <= set(_RANGE):
        raise FlagError(f"{row.name}: only a number has a range, such as {{low: 1e-5, high: 1e-4, log: true}}")
    low, high = (_value(row, value[key]) for key in ("low", "high"))
    log = value.get("log", False)
    if not isinstance(log, bool) or low >= high or (log and low <= 0):
        raise FlagError(f"{row.name}: low must be below high, and above 0 with log")
    return Range(low, high, log)


def runs(file: SweepFile, folder: Path, environment: Mapping[str, str]) -> list[PlannedRun]:
    """The grid's runs in the order of the file; FlagError if a setting does not fit a task, DataError without its data."""
    if file.ranges:
        raise FlagError(f"settings: {', '.join(file.ranges)} has a range; add --search=tpe or --search=random")
    count = math.prod(map(len, (file.tasks, file.seeds, *file.grid.values())))
    if count > _MOST:
        raise FlagError(f"settings: {count:,} runs, at most {_MOST:,} are possible; shorten the lists, or add --search=tpe")
    grid = [dict(zip(file.grid, values)) for values in itertools.product(*file.grid.values())]
    tasks = sorted(file.tasks, key=lambda task: task != MNLI) if file.from_mnli else file.tasks
    if file.from_mnli and MNLI not in file.tasks:
        raise FlagError("--from_mnli: MNLI is not among the tasks")
    known: Known = {}
    planned_runs = [
        planned(file, folder, task, seed, varying, environment, known=known)
        for task in tasks
        for varying in grid
        for seed in file.seeds
    ]
    name, count = collections.Counter(run.name for run in planned_runs).most_common(1)[0]
    if count > 1:
        raise FlagError(f"settings: two runs would be named {name}; values must differ in their first four digits")
    of_mnli = [run for run in planned_runs if run.task == MNLI and run.config.actions.do_predict]
    of_mnli = of_mnli if of_mnli and _has_diagnostic(environment) else []
    return [*planned_runs, *(_diagnostic(run, folder) for run in of_mnli)]


def inputs(file: SweepFile, environment: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of what runs read, by its name: files of settings, data of tasks, and checkpoints to start from."""
    from bert_tf.batch import trained

    values = {**{name: (value,) for name, value in file.fixed.items()}, **file.grid}
    texts = {value for several in values.values() for value in several if isinstance(value, str)}
    digests = {text: files.digest(text) for text in texts if os.path.isfile(text)}
    models = {name: name for name in values.get("init_checkpoint", ())} or {"$BERT_BASE_DIR": environment.get("BERT_BASE_DIR")}
    models.update((name, name) for name in values.get("start_head", ()))
    for name, model in models.items():
        digest = trained.digest(str(sources.checkpoint_of(model, environment=environment))) if model else None
        if digest is not None:
            digests[name] = digest
    for name, folder in itertools.product(file.tasks, values.get("data_dir", (None,))):
        task = get_task(name, configured(task_name=name, output_dir="-", **file.fixed, **file.first).of_task)
        if task.reads_folder:
            data = sources.find_data(task, folder, environment=environment).folder
            of_task = (task.file(data, split) for purpose in (TRAIN, DEV) for split in task.splits(data, purpose))
            digests.update({f"{folder or name}/{path.name}": files.digest(path) for path in of_task if path.exists()})
    return digests


def _has_diagnostic(environment: Mapping[str, str]) -> bool:
    try:
        sources.find_data(get_task(AX), None, environment=environment)
    except DataError:
        log.warning("no data for %s, GLUE's diagnostic examples: they are not predicted", AX)
        return False
    return True


def _diagnostic(of_mnli: PlannedRun, folder: Path) -> PlannedRun:
    """Predictions of AX, GLUE's diagnostic examples, by a model of MNLI."""
    name = of_mnli.name.replace(MNLI, AX, 1)
    values = {"init_checkpoint": str(folder / of_mnli.name), "output_dir": str(folder / name)}
    config = configured(task_name=AX, do_predict=True, **values)
    return PlannedRun(name, AX, of_mnli.seed, of_mnli.varying, config, _START, of_mnli.name)


def planned(
    file: SweepFile,
    folder: Path,
    task: str,
    seed: int,
    varying: Mapping[str, Any],
    environment: Mapping[str, str],
    name: str = "",
    *,
    known: Known | None = None,
) -> PlannedRun:
    """A run with some settings; by default, its name lists those that vary. Adds its data to `known`, or finds it there."""
    end = re.sub(r"[^A-Za-z0-9_.,=+-]", "_", "-".join(["", *assignments(varying), f"seed{seed}"]))
    name = name or f"{task}{end}"
    after = f"{MNLI}{end}" if file.from_mnli and task in FROM_MNLI else None
    values = {"do_train": True, "do_eval": True, **file.fixed, **varying, "seed": seed}
    if after:
        values["init_checkpoint"] = str(folder / after)
    config = configured(task_name=task, output_dir=str(folder / name), **values)
    known = {} if known is None else known
    key = f"{task} {config.of_task} {config.data.data_dir}"
    if key not in known:
        read = get_task(task, config.of_task)
        data_dir = sources.find_data(read, config.data.data_dir, environment=environment).folder
        known[key] = _Data(f"eval_{read.family.metrics[0]}", _extent(read, data_dir, TRAIN), _extent(read, data_dir, DEV))
    data, best = known[key], config.train.best_metric
    metric = f"eval_{best}" if best and not is_cost(best) else data.metric
    return PlannedRun(name, task, seed, dict(varying), config, _cost(config, data), after, file.hold_out, metric=metric)


def assignments(varying: Mapping[str, Any]) -> list[str]:
    """Settings as name=value; numbers have four digits."""
    return [f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in varying.items()]


def _cost(config: RunSpec, data: _Data) -> float:
    """Estimates the work of a run, in trained tokens."""
    train, longest = config.train, float(config.data.max_seq_length)
    (rows, tokens), (dev_rows, dev_tokens) = data.train, data.dev
    rows = min(rows, config.data.max_train_examples or rows)
    trained = train.num_train_steps * train.train_batch_size if train.num_train_steps else train.num_train_epochs * rows
    return _START + trained * min(tokens, longest) + dev_rows * min(dev_tokens, longest) / _FORWARD


def _rows_in(sample: bytes) -> int:
    """Rows of a part of a file: its lines, or where JSON has long ones, its questions or other objects."""
    lines = max(sample.count(b"\n"), 1)
    if lines > len(sample) / _LONG_LINE:
        return lines
    return max(lines, sample.count(b'"question"') or sample.count(b"{"))


def _extent(task: Task, folder: Path, purpose: str) -> tuple[float, float]:
    """Estimates the rows of a purpose's files, and the tokens of a row."""
    rows, size = 0.0, 0
    for split in task.splits(folder, purpose):
        path = task.file(folder, split)
        try:
            with files.open_plain(path) as file:
                sample, length = file.read(_SAMPLE), os.fstat(file.fileno()).st_size
        except OSError as error:
            raise DataError(f"cannot be read: {files.reason(error)}", path) from error
        rows, size = rows + length * _rows_in(sample) / max(len(sample), 1), size + length
    return rows, size / max(rows, 1.0) / _BYTES_PER_TOKEN
