"""Reads the files of runs, complete or not, and groups runs; missing or damaged files are skipped and reported."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.errors import OutputError
from bert_tf.estimator.run_folder import DETERMINING, SCHEDULE, STOPPED
from bert_tf.extension import Series
from bert_tf.io import documents, files
from bert_tf.run_layout import (
    EVALUATIONS,
    EXPLANATIONS,
    METRICS,
    RECORD,
    REPLACED,
    RESULTS,
    ROWS,
    WRONG_EXAMPLES,
    recorded_flags,
)
from bert_tf.tasks.settings import CUSTOM

if TYPE_CHECKING:
    from typing_extensions import TypeGuard  # in Python 3.10 and newer it is `typing`'s

Line = Mapping[str, float]  # numbers by name, the step among them

_LARGEST_FILE = 1 << 30  # bytes
_LARGEST = 1e100  # of a number in a chart
_SEED = "seed"  # key in the record of a training
_ENDING = re.compile(r"-seed\d+$")  # of names of runs with several settings


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """Results of a run on a task's dev data."""

    task: str
    results: Mapping[str, Any]  # contents of eval_results.json
    wrong: Sequence[Mapping[str, Any]] | None  # lines of wrong_examples.jsonl; None without the file
    explanations: Sequence[Mapping[str, Any]] = ()  # lines of explanations.jsonl

    @property
    def splits(self) -> Mapping[str, Mapping[str, Any]]:
        splits = self.results.get("splits")
        return {name: split for name, split in splits.items() if isinstance(split, dict)} if isinstance(splits, dict) else {}


@dataclasses.dataclass(frozen=True)
class Run:
    """Contents of a run's folder."""

    name: str  # on the page
    folder: Path
    record: Mapping[str, Any]  # contents of run_config.json; empty if missing
    metrics: Sequence[Line]  # ascending steps
    evaluations: Sequence[Line]  # during training, ascending steps
    evaluated: Sequence[Evaluated]  # the run's own task first
    problems: Sequence[str]  # one line per unreadable or incomplete file
    series: Path | None = None  # the requested folder if it is a series of runs

    @property
    def training(self) -> Mapping[str, Any]:
        """The part of the record that determines the result."""
        return mapping(self.record, DETERMINING)

    @property
    def planned_steps(self) -> int | None:
        """Steps of all phases; None if the record does not say."""
        schedule = mapping(self.record, SCHEDULE)
        steps = [schedule.get("steps"), schedule.get("phase2_steps", 0)]
        return sum(steps) if all(map(is_number, steps)) else None

    @property
    def stopped_at(self) -> int | None:
        """The step of an early end; None without one."""
        step = mapping(self.record, SCHEDULE).get(STOPPED)
        return int(step) if is_number(step) else None

    @property
    def kind(self) -> Series | None:
        """The kind of its series, by the name of its folder."""
        return numbered(self.folder) if self.series is not None else None

    @property
    def differ_in(self) -> tuple[str, ...]:
        """Keys of the record in which the runs of its series differ, besides the seed."""
        return self.kind.differ_in if self.kind else ()

    @property
    def task(self) -> str:
        return str(self.training.get("task_name", "unknown task"))

    @property
    def data(self) -> str:
        """The task, or for files of one's own their name and the kind of problem."""
        if self.task != CUSTOM:
            return self.task
        flags = recorded_flags(self.record)
        name = Path(flags.get("train_file") or flags.get("dev_file") or "own data").name
        return f"{name}, {str(self.training.get('kind', 'task unknown')).replace('_', '-')}"

    @property
    def place(self) -> str:
        """Name of the folder, after that of its series."""
        return "/".join(self.folder.parts[-2:]) if numbered(self.folder) else self.folder.name

    def replaced(self, split: str, metric: str, details: Mapping[str, Any]) -> float | None:
        """The metric of the run that this one replaced, if it was of the same task and examples (by number, if not known)."""
        replaced = mapping(self.record, REPLACED)
        earlier = mapping(mapping(replaced, "splits"), split)
        value = earlier.get(metric)
        compared = ("examples", ROWS) if ROWS in earlier else ("examples",)
        is_same = replaced.get("task_name") == self.task and all(earlier.get(name) == details.get(name) for name in compared)
        return value if is_same and is_number(value) else None

    @property
    def recorded_command(self) -> str:
        """The command that repeats the run; empty if unknown."""
        return self._text("command")

    @property
    def command(self) -> str:
        """The same for publication: absolute paths are cut to their last two parts."""
        return without_folders(self.recorded_command, keep=2)

    @property
    def note(self) -> str:
        return self._text("data_note")

    def _text(self, key: str) -> str:
        value = self.record.get(key)
        return value if isinstance(value, str) else ""

    @property
    def own(self) -> Evaluated | None:
        """Results on the run's own task; None if not evaluated."""
        return next((evaluated for evaluated in self.evaluated if evaluated.task == self.task), None)


def _series() -> list[Series]:
    return [series for entry in extension.installed().values() for series in entry.series]


def numbered(folder: Path) -> Series | None:
    """The kind of series to whose runs a folder belongs by its name, which says little."""
    return next((series for series in _series() if series.prefix and _number_of(folder, series) is not None), None)


def _number_of(folder: Path, kind: Series) -> int | None:
    number = folder.name[len(kind.prefix) :]
    return int(number) if folder.name.startswith(kind.prefix) and number.isdecimal() else None


def mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A nested JSON object; empty if the value is not an object."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


CUT = ".../"  # of a path that commands read back: they must not find another file by the rest of its name


def without_folders(command: str, *, keep: int, mark: str = "") -> str:
    """Cuts absolute paths of a command to `keep` parts after `mark`, but not devices as /GPU:0; empty if unparsable."""
    try:
        words = [word.partition("=") if word.startswith("-") else ("", "", word) for word in shlex.split(command)]
    except ValueError:
        return ""
    return shlex.join(
        name + equals + ",".join(_end(path, keep, mark) for path in value.split(",")) for name, equals, value in words
    )


_DEVICE = re.compile(r"(\w+:)?(/[A-Za-z]+(:[\w*]+)+)+")  # or after a part of the model, as in head:/GPU:0
_PATH = re.compile(r"(\w+:(?!//))?(/.*)")  # or after a kind, as in cost:/a/b; no URL


def _end(path: str, keep: int, mark: str) -> str:
    match = None if _DEVICE.fullmatch(path) else _PATH.fullmatch(path)
    return path if match is None else (match[1] or "") + mark + "/".join(Path(match[2]).parts[1:][-keep:])


class NoRunError(OutputError):
    """A folder holds neither a run nor a series."""


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Reads runs; the folder of a series stands for its runs. Raises OutputError if a folder holds no readable run."""
    try:
        series_of: dict[Path, Path | None] = {}
        for folder in folders:
            for path in _runs(folder):
                series_of.setdefault(path.resolve(), None if path == folder else folder.resolve())
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot read: {error.strerror}") from error
    return [_read(folder, name, series) for (folder, series), name in zip(series_of.items(), _names(list(series_of)))]


def _runs(folder: Path) -> Iterator[Path]:
    if any((folder / name).is_file() for name in (RECORD, METRICS, RESULTS)):
        yield folder
        return
    of_names = (_numbered_runs(folder, kind) for kind in _series() if kind.prefix)
    listed = next((kind for kind in _series() if kind.table and (folder / kind.table).is_file()), None)
    if numbered_runs := next(filter(None, of_names), None):
        yield from numbered_runs
    elif listed:
        begun = sorted(path for path in folder.iterdir() if (path / RECORD).is_file())
        if not begun:
            raise OutputError(f"{folder}: no run of the {listed.name} started; {listed.table} has their errors")
        yield from begun
    else:
        names = (RECORD, METRICS, RESULTS, *(f"{kind.prefix}*/{RECORD}" for kind in _series() if kind.prefix))
        what = files.missing_folder(folder) or f"holds no run: none of {', '.join(names)}"
        raise NoRunError(f"{folder}: {what}; name the --output_dir of a training")


def _numbered_runs(folder: Path, kind: Series) -> list[Path]:
    numbers = {path: _number_of(path, kind) for path in folder.glob(f"{kind.prefix}*") if (path / RECORD).is_file()}
    return sorted((path for path, number in numbers.items() if number is not None), key=lambda path: numbers[path] or 0)


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest path endings that are distinct."""
    for parts in range(1, max((len(folder.parts) for folder in folders), default=1) + 1):
        names = ["/".join(folder.parts[-parts:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _read(folder: Path, name: str, series: Path | None) -> Run:
    problems: list[str] = []
    record = _object(folder / RECORD, problems) or {}
    task = str(mapping(record, DETERMINING).get("task_name", "unknown task"))
    inner = [path.parent for path in sorted(folder.glob(f"*/{RESULTS}"))]
    places = [(task, folder), *((path.name, path) for path in inner if not (path / RECORD).exists())]  # else another run
    evaluated = [
        Evaluated(
            of_task,
            results,
            _lines(directory / WRONG_EXAMPLES, problems),
            _lines(directory / EXPLANATIONS, problems) or (),
        )
        for of_task, directory in places
        if (results := _object(directory / RESULTS, problems)) is not None
    ]
    metrics, evaluations = (_numbers(folder / file, problems) for file in (METRICS, EVALUATIONS))
    return Run(name, folder, record, metrics, evaluations, evaluated, problems, series)


def read_object(path: Path) -> dict[str, Any] | None:
    """None if the file is missing or does not hold a JSON object."""
    try:
        content = documents.parse_json(files.read_bytes(path, most=_LARGEST_FILE).decode(), has_paths=True)
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _object(path: Path, problems: list[str]) -> dict[str, Any] | None:
    content = read_object(path)
    if content is None and path.exists():
        problems.append(f"{path.name}: unreadable")
    return content


def _lines(path: Path, problems: list[str]) -> list[dict[str, Any]] | None:
    """Objects of a JSON lines file; None if it is missing."""
    try:
        texts = files.read_bytes(path, most=_LARGEST_FILE).decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(f"{path.name}: {files.reason(error)}")
        return None
    lines, damaged = [], 0
    for text in filter(str.strip, texts[:-1]):  # drops a line cut off by a kill
        try:
            line = documents.json_value(text)
        except ValueError:
            line = None
        if isinstance(line, dict):
            lines.append(line)
        else:
            damaged += 1
    if damaged:
        problems.append(f"{path.name}: unreadable lines skipped: {damaged}")
    return lines


def _numbers(path: Path, problems: list[str]) -> list[Line]:
    """Finite numbers of each line with a step; of repeated steps the later line counts."""
    by_step = {}
    for line in _lines(path, problems) or ():
        numbers = {key: value for key, value in line.items() if is_number(value)}
        if "step" in numbers:
            by_step[numbers["step"]] = numbers
    return [by_step[step] for step in sorted(by_step)]


def is_number(value: object) -> TypeGuard[float]:
    """Whether a JSON value is a number that a chart can show, neither infinite nor nearly so."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST


@dataclasses.dataclass(frozen=True)
class Group:
    """A run, or runs of a series that differ only in the seed or in what it varies: one line in charts, with a mean."""

    name: str
    runs: Sequence[Run]  # at least one

    @property
    def task(self) -> str:
        return self.runs[0].task

    @property
    def differ_in(self) -> str:
        kind = self.runs[0].kind
        return kind.name if kind else "seeds"


def groups(runs: Sequence[Run]) -> list[Group]:
    """Runs in order; those of a series that differ only in the seed, or in what it varies, are one group."""
    by_series: dict[Path, list[Run]] = {}
    for run in runs:
        by_series.setdefault(run.series or run.folder, []).append(run)
    return [group for same in by_series.values() for group in _groups(same)]


def _groups(runs: Sequence[Run]) -> list[Group]:
    same: dict[str, list[Run]] = {}
    for run in runs:
        same.setdefault(_setting(run) if run.training else run.name, []).append(run)
    if len(same) == 1 < len(runs):
        above, _, name = runs[0].name.rpartition("/")
        series = runs[0].series
        return [Group(above or (series.name if series else name), runs)]
    return [Group(_common_name(members), members) for members in same.values()]


def _common_name(runs: Sequence[Run]) -> str:
    """Their common name without the seeds, else all their names."""
    if len(runs) > 1 and len(common := {_ENDING.sub("", run.name) for run in runs}) == 1:
        return common.pop()
    return ", ".join(run.name for run in runs)


def samples(runs: Sequence[Run]) -> list[Group]:
    """Two or more runs each that differ only in the seed, or in what their series varies, so that a mean is meaningful."""
    same: dict[str, list[Run]] = {}
    for run in runs:
        if run.training:
            same.setdefault(_setting(run), []).append(run)
    numbers = {key: {_number(run) for run in members} for key, members in same.items()}
    return [Group(_name(members, runs), members) for key, members in same.items() if len(numbers[key]) == len(members) > 1]


def _number(run: Run) -> str:
    """What runs of a sample differ in."""
    return run.folder.name if run.differ_in else documents.to_json(run.training.get(_SEED))


def _name(runs: Sequence[Run], every: Sequence[Run]) -> str:
    (series, *others) = {run.series for run in runs}
    if others or series is None:
        return ", ".join(run.name for run in runs)
    members = [run for run in every if run.series == series]
    return next(group.name for group in _groups(members) if group.runs[0] is runs[0])


def _setting(run: Run) -> str:
    same = {key: value for key, value in run.training.items() if key not in (_SEED, *run.differ_in)}
    return documents.to_json([same, str(run.series) if run.differ_in else None], sort_keys=True)
