"""Sends what is new in a run to a tracker, as read from its files.

A point that was sent is recognized by its metric and step: steps of a metric only rise, so the last one says which are
missing. After an error (the request may have arrived nevertheless) and in a new process, the tracker is asked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bert_tf import run_layout
from bert_tf.errors import BertError, OutputError
from bert_tf.estimator.run_folder import MACHINE, VERSIONS
from bert_tf.extensions.report import run_files
from bert_tf.extensions.report.run_files import Evaluated, Run, is_number, mapping
from bert_tf.extensions.track import FOLDER
from bert_tf.extensions.track.trackers import FINISHED, KILLED, RUNNING, Marks, Point, Tracker, connect
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import redacted
from bert_tf.training.results import split_and_average

T = TypeVar("T")

_SHOWN = 300  # characters of a message

FILES = (
    *(run_layout.RECORD, run_layout.CONFIG, run_layout.VOCABULARY, run_layout.TOKENIZER, run_layout.DECISION),
    *(run_layout.RESULTS_TEXT, run_layout.RESULTS, run_layout.TIMING, run_layout.PAGE, run_layout.CARD),
)
_TAGS = ("command", "data_note")  # keys of a record
SWEEP_TAG = "bert_tf.sweep"

_OF_SWEEP = ("sweep.tsv", "sweep.json")  # beside the folders of its runs
_UNUSUAL = re.compile(r"[^\w\-. /]")  # characters that MLflow refuses in names


@dataclasses.dataclass(frozen=True)
class Contents:
    """The part of a run that trackers show."""

    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    series: Sequence[Point]  # of training, and evaluations during it; ascending steps
    results: Sequence[Point]  # of the last evaluation
    files: Mapping[str, str]  # SHA-256 by name
    ending: str  # status if training has ended

    @property
    def described(self) -> str:
        """Digest of parameters and tags."""
        return _digest([dict(self.parameters), dict(self.tags)])


def settings_digest(run: Run) -> str:
    return _digest(run.training)


def run_id(run: Run) -> str:
    """Identifies a run by its settings and its place; a continued run has the same."""
    return _digest([socket.gethostname(), str(run.folder.resolve()), run.training])


def sweep_of(folder: Path) -> str:
    """Name of the sweep that a run belongs to; empty if there is none."""
    above = folder.resolve().parent
    return above.name if any((above / name).is_file() for name in _OF_SWEEP) else ""


def _digest(value: object) -> str:
    return hashlib.sha256(documents.to_json(value, sort_keys=True).encode()).hexdigest()[:16]


def read_contents(run: Run) -> Contents:
    series = [*_series("train", run.metrics), *_series("eval", run.evaluations)]
    last = max((point.step for point in series), default=0)
    results = [
        point
        for evaluated in run.evaluated
        for point in _results(evaluated, "" if evaluated is run.own else f"{evaluated.task}/", last)
    ]
    sweep, paths = sweep_of(run.folder), [run.folder / name for name in FILES]
    own = [path for path in paths if path.is_file() and not atomic.is_link_out(path)]  # a stranger's run may link to anything
    trained = run.stopped_at is not None or last >= (run.planned_steps or 1)
    return Contents(
        dict(_flat(run.training)),
        {
            **({SWEEP_TAG: sweep} if sweep else {}),
            **{key: str(run.record[key]) for key in _TAGS if run.record.get(key)},
            **{f"{key}.{name}": text for key in (VERSIONS, MACHINE) for name, text in _flat(mapping(run.record, key))},
        },
        sorted(series, key=lambda point: point.step),
        results,
        {path.name: files.digest(path) for path in own},
        FINISHED if trained or results else KILLED,
    )


def _series(prefix: str, lines: Sequence[Mapping[str, float]]) -> Iterator[Point]:
    for line in lines:
        for name, value in line.items():
            if name != "step":
                yield Point(_name(f"{prefix}/{name.removeprefix('eval_')}"), int(line["step"]), float(value))


def _results(evaluated: Evaluated, prefix: str, last: int) -> Iterator[Point]:
    for split, values in evaluated.splits.items():
        _, average = split_and_average(split)
        recorded = evaluated.results.get(f"global_step_{average}", evaluated.results.get("global_step"))
        step = int(recorded) if is_number(recorded) else last
        for name, value in values.items():
            if is_number(value):
                yield Point(_name(f"{prefix}{split}/{name}"), step, float(value))


def _name(text: str) -> str:
    return _UNUSUAL.sub("_", text)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields nested settings by dotted names, as text."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield _name(f"{prefix}{key}"), value if isinstance(value, str) else documents.to_json(value)


@dataclasses.dataclass(frozen=True)
class State:
    """What was sent of a run, kept in RUN/tracking/TRACKER.json."""

    run: str  # tag of the remote run
    settings: str  # digest of those that determine the run
    remote: str = ""  # its id; empty before there is one
    described: str = ""  # digest of the sent parameters and tags
    marks: Marks = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)  # digests of the sent ones, by name
    status: str = ""


def load_state(path: Path, run: str, settings: str) -> State:
    """Returns an empty state if the file is missing, damaged or of another run; that of a moved folder keeps its tag."""
    content = run_files.read_object(path) or {}
    try:
        marks = {name: Point(name, int(step), float(value)) for name, (step, value) in content["marks"].items()}
        texts = {name: str(content[name]) for name in ("run", "settings", "remote", "described", "status")}
        read = State(**texts, marks=marks, files={name: str(digest) for name, digest in content["files"].items()})
        return read if read.settings == settings else State(run, settings)
    except (KeyError, TypeError, ValueError, AttributeError):
        return State(run, settings)


@dataclasses.dataclass(frozen=True)
class Sent:
    """What one replay has sent."""

    run: Path
    tracker: str
    remote: str  # the tracker's id of the run
    points: int
    files: int
    version: str = ""  # of the registered model


class ReplacedError(OutputError):
    """The folder of a run was overwritten by another one."""


class Replay:
    """Sends a run, repeatedly while it is written."""

    def __init__(self, folder: Path, tracker: Tracker) -> None:
        """Reads the state that an earlier replay has left."""
        self.folder, self.tracker = folder, tracker
        self._path = folder / FOLDER / f"{tracker.name}.json"
        run = run_files.read_runs([folder])[0]
        self._state, self._is_open = load_state(self._path, run_id(run), settings_digest(run)), False

    def send(self, status: str = "") -> Sent:
        """Sends what is new; `status` is empty if training has ended. OutputError names the tracker."""
        run = run_files.read_runs([self.folder])[0]
        if settings_digest(run) != self._state.settings:
            raise ReplacedError(f"{self.folder}: holds another run by now")
        return self.guarded(lambda: self._send(read_contents(run), status))

    def guarded(self, request: Callable[[], T]) -> T:
        """Calls a function that uses the tracker; OutputError if it fails."""
        try:
            return _called(f"{self.folder}: not all was sent to {self.tracker.name}", request)
        except BertError:
            self._is_open = False
            raise

    def _send(self, current: Contents, status: str) -> Sent:
        if not self._is_open:
            self._open()
        before = self._state.marks
        if current.described != self._state.described:
            self.tracker.describe(current.parameters, current.tags)
            self._keep(described=current.described)
        points = [point for point in current.series if point.name not in before or point.step > before[point.name].step]
        points += [point for point in current.results if before.get(point.name) != point]
        if points:
            marks = {**before, **{point.name: point for point in points}}
            self.tracker.add(points, marks)
            self._keep(marks=marks)
        new = [name for name, digest in current.files.items() if self._state.files.get(name) != digest]
        for name in new:
            self.tracker.upload(self.folder / name)
            self._keep(files={**self._state.files, name: current.files[name]})
        status = status or (RUNNING if current.ending == KILLED and lock.is_written(self.folder) else current.ending)
        if status != self._state.status:
            self.tracker.end(status)
            self._keep(status=status)
        return Sent(self.folder, self.tracker.name, self._state.remote, len(points), len(new))

    def _open(self) -> None:
        earlier = self._state
        group = sweep_of(self.folder)
        remote = self.tracker.open(earlier.run, earlier.remote, self.folder.resolve().name, group)
        if remote != earlier.remote:
            self._state = State(earlier.run, earlier.settings, remote)
        known = self.tracker.marks()
        self._keep(**({} if known is None else {"marks": known}))
        self._is_open = True

    def _keep(self, **changed: object) -> None:
        self._state = dataclasses.replace(self._state, **changed)  # type: ignore[arg-type]
        values = {**vars(self._state), "marks": {name: point[1:] for name, point in self._state.marks.items()}}
        atomic.write_text(self._path, documents.to_json(values, indent=1, sort_keys=True) + "\n")


@contextlib.contextmanager
def opened(folder: Path, name: str, *, wait: bool = False) -> Iterator[Replay]:
    """Connects a run with a tracker; OutputError if another process sends it, unless `wait`."""
    state_folder = atomic.make_folder(folder / FOLDER, follows=False)
    atomic.refuse_link_out(state_folder / name)
    with lock.claiming(state_folder / name, wait=wait) as other:
        if other is not None:
            raise OutputError(f"{state_folder}: {other}; wait until it ends")
        with contextlib.closing(_called(name, lambda: connect(name, state_folder))) as tracker:
            yield Replay(folder, tracker)


def _called(what: str, request: Callable[[], T]) -> T:
    try:
        return request()
    except BertError:
        raise
    except Exception as error:  # each tracker has its own
        text = str(error).strip() or repr(error)
        message = redacted(text)
        cause = error if message == text else None  # a traceback would show it
        raise OutputError(f"{what}: {message.splitlines()[0][:_SHOWN]}; repeat the command to send the rest") from cause
