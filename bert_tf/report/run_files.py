"""Reads the files of a run, as far as it came: files that are missing, cut off or damaged are left out and named."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import documents, files
from bert_tf.errors import OutputError
from bert_tf.estimator.run_folder import DETERMINING
from bert_tf.run_layout import EVALUATIONS, METRICS, RECORD, RESULTS, WRONG_EXAMPLES

if TYPE_CHECKING:
    from typing_extensions import TypeGuard  # in Python 3.10 and newer it is `typing`'s

Line = Mapping[str, float]  # numbers by name, the step among them

_LARGEST_FILE = 1 << 30  # bytes
_LARGEST = 1e100  # number of a chart


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """What the run reached on the dev data of a task.

    Attributes:
      task: its name.
      results: contents of eval_results.json.
      wrong: lines of wrong_examples.jsonl; None where there is no such file.
    """

    task: str
    results: Mapping[str, Any]
    wrong: Sequence[Mapping[str, Any]] | None

    @property
    def splits(self) -> Mapping[str, Mapping[str, Any]]:
        """What was measured, by split."""
        found = self.results.get("splits")
        return {name: split for name, split in found.items() if isinstance(split, dict)} if isinstance(found, dict) else {}


@dataclasses.dataclass(frozen=True)
class Run:
    """A run's folder.

    Attributes:
      name: what the page calls it.
      folder: where it is.
      record: contents of run_config.json; empty where there is none.
      metrics: of steps, in their order.
      evaluations: while it trained, in the order of their steps.
      evaluated: the task of the run first.
      problems: one line for each file that could not be read, or not whole.
      series: the folder that was named, where it is that of a series of seeds; else None.
    """

    name: str
    folder: Path
    record: Mapping[str, Any]
    metrics: Sequence[Line]
    evaluations: Sequence[Line]
    evaluated: Sequence[Evaluated]
    problems: Sequence[str]
    series: Path | None = None

    @property
    def training(self) -> Mapping[str, Any]:
        """What determined the run."""
        return mapping(self.record, DETERMINING)

    @property
    def task(self) -> str:
        """Name of the task that it was trained on."""
        return str(self.training.get("task_name", "unknown task"))

    @property
    def recorded_command(self) -> str:
        """The command that repeats it; empty where it is not known."""
        return self._text("command")

    @property
    def command(self) -> str:
        """The same for a page that others read: of absolute paths the last two parts."""
        return without_folders(self.recorded_command, keep=2)

    @property
    def note(self) -> str:
        """What is to be known of its data; empty where there is nothing."""
        return self._text("data_note")

    def _text(self, key: str) -> str:
        found = self.record.get(key)
        return found if isinstance(found, str) else ""

    @property
    def own(self) -> Evaluated | None:
        """What it reached on that task; None where it was not evaluated."""
        return next((found for found in self.evaluated if found.task == self.task), None)


def mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Returns a part of a JSON object that is an object itself; an empty one where it is not.

    Args:
      parent: the object.
      key: of its part.
    """
    found = parent.get(key)
    return found if isinstance(found, dict) else {}


def without_folders(command: str, *, keep: int) -> str:
    """Returns a command whose absolute paths are cut to their last parts; nothing if it cannot be read.

    Args:
      command: as a shell takes it.
      keep: how many parts of a path; a device such as /GPU:0 is none.
    """
    try:
        words = [word.partition("=") for word in shlex.split(command)]
    except ValueError:
        return ""
    return shlex.join(name + equals + ",".join(_end(path, keep) for path in value.split(",")) for name, equals, value in words)


def _end(path: str, keep: int) -> str:
    return "/".join(Path(path).parts[-keep:]) if path.startswith("/") and ":" not in path else path


def read(folders: Sequence[Path]) -> list[Run]:
    """Reads the runs of folders; the folder of a series of seeds stands for its seeds.

    Raises:
      OutputError: a folder holds no run, or cannot be read.
    """
    try:
        found: dict[Path, Path | None] = {}
        for folder in folders:
            for path in _runs(folder):
                found.setdefault(path.resolve(), None if path == folder else folder.resolve())
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot read: {error.strerror}") from error
    return [_read(folder, name, series) for (folder, series), name in zip(found.items(), _names(list(found)))]


def _runs(folder: Path) -> Iterator[Path]:
    seeds = _seeds(folder)
    if any((folder / name).is_file() for name in (RECORD, METRICS, RESULTS)):
        yield folder
    elif seeds:
        yield from seeds
    else:
        what = files.missing_folder(folder) or f"holds no run: none of {RECORD}, {METRICS}, {RESULTS}, seed-*/{RECORD}"
        raise OutputError(f"{folder}: {what}; name the --output_dir of a training")


def _seeds(folder: Path) -> list[Path]:
    """Returns the runs of a series of seeds, finished or not."""
    seeds = [path for path in folder.glob("seed-*") if path.name[5:].isdecimal() and (path / RECORD).is_file()]
    return sorted(seeds, key=lambda path: int(path.name[5:]))


def _names(folders: Sequence[Path]) -> list[str]:
    """Returns as many last parts of the paths as tell them apart."""
    for parts in range(1, max((len(folder.parts) for folder in folders), default=1) + 1):
        names = ["/".join(folder.parts[-parts:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _read(folder: Path, name: str, series: Path | None) -> Run:
    problems: list[str] = []
    record = _object(folder / RECORD, problems) or {}
    task = str(mapping(record, DETERMINING).get("task_name", "unknown task"))
    places = [(task, folder), *((path.parent.name, path.parent) for path in sorted(folder.glob(f"*/{RESULTS}")))]
    evaluated = [
        Evaluated(of_task, results, _wrong(place, problems))
        for of_task, place in places
        if (results := _object(place / RESULTS, problems)) is not None
    ]
    metrics, evaluations = (_numbers(folder / file, problems) for file in (METRICS, EVALUATIONS))
    return Run(name, folder, record, metrics, evaluations, evaluated, problems, series)


def read_object(path: Path) -> dict[str, Any] | None:
    """Returns the object in a JSON file; None where there is no such file, or something else in it."""
    try:
        found = documents.json_value(files.read_text(path))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _object(path: Path, problems: list[str]) -> dict[str, Any] | None:
    found = read_object(path)
    if found is None and path.exists():
        problems.append(f"{path.name}: unreadable")
    return found


def _lines(path: Path, problems: list[str]) -> list[dict[str, Any]] | None:
    """Returns the objects of a file of JSON lines; None where there is no such file."""
    try:
        texts = files.read_bytes(path, most=_LARGEST_FILE).decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(f"{path.name}: {files.reason(error)}")
        return None
    found, damaged = [], 0
    for text in filter(str.strip, texts[:-1]):  # what follows the last line end was cut off by a kill
        try:
            line = documents.json_value(text)
        except ValueError:
            line = None
        if isinstance(line, dict):
            found.append(line)
        else:
            damaged += 1
    if damaged:
        problems.append(f"{path.name}: unreadable lines, which are left out: {damaged}")
    return found


def _numbers(path: Path, problems: list[str]) -> list[Line]:
    """Returns the finite numbers of each line that has a step; where steps were taken again, the later line."""
    by_step = {}
    for line in _lines(path, problems) or ():
        numbers = {key: value for key, value in line.items() if is_number(value)}
        if "step" in numbers:
            by_step[numbers["step"]] = numbers
    return [by_step[step] for step in sorted(by_step)]


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a value of JSON is a number that a chart can show: no infinity, and nothing near it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST


def _wrong(folder: Path, problems: list[str]) -> list[dict[str, Any]] | None:
    return _lines(folder / WRONG_EXAMPLES, problems)
