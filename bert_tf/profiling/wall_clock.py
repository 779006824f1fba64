"""Wall time of a command by phase, from the start of its process to its end.

Spans nest, and an outer span excludes the time of inner ones, so that all parts add up to the wall time. There is one
clock per process, and only the main thread opens spans.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from bert_tf import extension


class Ranges:
    """Named ranges, which may overlap or be closed by another thread; `seconds` lists durations by name, in order."""

    def __init__(self) -> None:
        self._nvtx: Any = None
        with contextlib.suppress(ImportError):  # not installed, or a library it needs is missing
            self._nvtx = importlib.import_module("nvtx")
        self._open: dict[str, tuple[float, Any]] = {}
        self._lock = threading.Lock()
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)

    @property
    def seen_by_nsight(self) -> bool:
        return self._nvtx is not None

    def start(self, name: str, *, shown: str | None = None) -> None:
        """Opens a range; `shown` is its name in Nsight Systems if different."""
        mark = self._nvtx.start_range(message=shown or name) if self._nvtx else None
        with self._lock:
            self._open[name] = (time.perf_counter(), mark)

    def end(self, name: str) -> None:
        """Closes a range, if it is open."""
        now = time.perf_counter()
        with self._lock:
            started, mark = self._open.pop(name, (None, None))
            if started is not None:
                self.seconds[name].append(now - started)
        if mark is not None:
            self._nvtx.end_range(mark)

    def end_all(self) -> None:
        for name in reversed(list(self._open)):
            self.end(name)


START, DEVICES, DATA, KERNELS, FEATURES = "start", "devices", "data", "kernels", "features"
GRAPH, FIRST_STEPS, STEPS, SAVES, EVALUATIONS, LOG, BETWEEN = (
    "graph",
    "first_steps",
    "steps",
    "saves",
    "evaluations",
    "log",
    "between",
)
CLOSING, EVALUATION, PREDICTION, UNACCOUNTED = "closing", "evaluation", "prediction", "unaccounted"


# The parts in the order of a run, with their display names.
_OF_CORE: Mapping[str, str] = {
    START: "start of Python, imports",
    DEVICES: "setting up devices",
    DATA: "reading data and settings",
    KERNELS: "building or loading native kernels",
    FEATURES: "features",
    GRAPH: "graph and session",
    FIRST_STEPS: "first steps",
    STEPS: "steps",
    SAVES: "saving checkpoints",
    EVALUATIONS: "evaluating while training",
    LOG: "log",
    BETWEEN: "between steps, the rest",
    CLOSING: "end of training",
    EVALUATION: "evaluation",
    PREDICTION: "prediction",
    UNACCOUNTED: "unaccounted",
}


def _with_extensions() -> dict[str, str]:
    times = [part for entry in extension.installed().values() for part in entry.times.items()]
    added = {key: part for key, part in times if key not in _OF_CORE}
    parts: dict[str, str] = {}
    for key, name in _OF_CORE.items():
        parts[key] = name
        parts.update((new, new_name) for new, (new_name, before) in added.items() if before == key)
    return {**parts, **{new: new_name for new, (new_name, _) in added.items() if new not in parts}}


PARTS: Mapping[str, str] = _with_extensions()
BETWEEN_STEPS = (SAVES, EVALUATIONS, LOG, BETWEEN)  # of training

_SHOWN = 0.05  # seconds


@dataclasses.dataclass(frozen=True)
class Account:
    """Wall time so far, by phase."""

    seconds: float  # since process start, or since the previous run in it
    parts: Mapping[str, float]  # seconds by key of `PARTS`, in that order; sum: seconds
    repeated: Set[str] = frozenset()  # keys of phases entered more than once

    @property
    def trained(self) -> bool:
        return FIRST_STEPS in self.parts

    @property
    def text(self) -> str:
        """One line for people, without parts under 50 ms."""
        named = (f"{PARTS[key]} {spent:.1f}" for key, spent in self.parts.items() if spent >= _SHOWN)
        return f"wall time {self.seconds:.1f} s: {', '.join(named)}"


class WallClock:
    def __init__(self, *, elapsed: float = 0.0) -> None:
        self._ranges = Ranges()
        self._begin(elapsed)

    def _begin(self, elapsed: float) -> None:
        self._ranges.end_all()
        self._began = time.perf_counter() - elapsed
        self._seconds: dict[str, float] = collections.defaultdict(float, {START: elapsed})
        self._begun = collections.Counter[str]()
        self._open = [START]
        self._ranges.start(START)

    def enter(self, name: str) -> None:
        self._book(then=name)
        self._begun[name] += 1
        self._open.append(name)

    def leave(self) -> None:
        self._book(then=self._open[-2])
        self._open.pop()

    def rename(self, name: str) -> None:
        """Closes the innermost span and opens another instead."""
        self._book(then=name)
        self._open[-1] = name

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Times a block, or a function as a decorator; also closes spans that an error in it left open."""
        depth = len(self._open)
        self.enter(name)
        try:
            yield
        finally:
            self._book(then=self._open[depth - 1])
            del self._open[depth:]

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Times a run: the first starts with the process, each later one at the end of the previous one."""
        self.rename(UNACCOUNTED)
        try:
            yield
        finally:
            self._begin(elapsed=0.0)

    def restart(self) -> None:
        """Discards earlier time, so that a run inside a larger program starts with its call."""
        self._begin(elapsed=0.0)

    def elapsed(self) -> float:
        """Returns seconds since the process started, or since the previous run in it."""
        return time.perf_counter() - self._began

    def account(self) -> Account:
        """Returns the account so far; spans stay open."""
        self._book(then=self._open[-1])
        seconds = self.elapsed()
        parts = {name: self._seconds[name] for name in PARTS if name in self._seconds and name != UNACCOUNTED}
        repeated = frozenset(name for name, times in self._begun.items() if times > 1)
        return Account(seconds, {**parts, UNACCOUNTED: seconds - sum(parts.values())}, repeated)

    def _book(self, *, then: str) -> None:
        name = self._open[-1]
        self._ranges.end(name)
        self._seconds[name] += self._ranges.seconds[name].pop()
        self._ranges.start(then)


def process_age() -> float:
    """Returns seconds since this process started; 0 if the system does not tell."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK"), 0.0)
    except (OSError, ValueError, LookupError, AttributeError):
        return 0.0


WALL = WallClock(elapsed=process_age())
TURN = threading.Lock()  # held by the thread that measures: there is one clock per process
