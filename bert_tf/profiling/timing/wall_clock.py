"""Wall time of a command by phase, from the start of its process to its end.

One clock for the process, in the way of its log: whoever does a part of the work opens a span. Spans nest; the time of an inner
one is not that of the outer one, so that all parts add up to the wall time. The main thread alone opens them.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from bert_tf.profiling.timing.ranges import Ranges

START, DEVICES, DATA, KERNELS, FEATURES, GRAPH = "start", "devices", "data", "kernels", "features", "graph"
FIRST_STEPS, STEPS, SAVES, EVALUATIONS, LOG, BETWEEN = "first_steps", "steps", "saves", "evaluations", "log", "between"
CLOSING, EVALUATION, PREDICTION, PAGE, UNACCOUNTED = "closing", "evaluation", "prediction", "page", "unaccounted"

# The parts in the order of a run, and what people call them.
PARTS: Mapping[str, str] = {
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
    PAGE: "page",
    UNACCOUNTED: "unaccounted",
}
BETWEEN_STEPS = (SAVES, EVALUATIONS, LOG, BETWEEN)  # of training

_SHOWN = 0.05  # seconds


@dataclasses.dataclass(frozen=True)
class Account:
    """Where the time went so far.

    Attributes:
      seconds: since the process started, or since the run before in the same process.
      parts: seconds by key of `PARTS`, in that order; together they are `seconds`.
      repeated: keys of those that were begun more than once.
    """

    seconds: float
    parts: Mapping[str, float]
    repeated: Set[str] = frozenset()

    @property
    def trained(self) -> bool:
        """Whether a step was taken."""
        return FIRST_STEPS in self.parts

    @property
    def text(self) -> str:
        """One line for a person; what took less than 50 ms is left out."""
        named = (f"{PARTS[key]} {spent:.1f}" for key, spent in self.parts.items() if spent >= _SHOWN)
        return f"wall time {self.seconds:.1f} s: {', '.join(named)}"


class WallClock:
    """Adds up the time of spans."""

    def __init__(self, *, elapsed: float = 0.0) -> None:
        """Starts the clock.

        Args:
          elapsed: seconds that have passed already.
        """
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
        """Opens a span in the one that is open."""
        self._book(then=name)
        self._begun[name] += 1
        self._open.append(name)

    def leave(self) -> None:
        """Closes the innermost span."""
        self._book(then=self._open[-2])
        self._open.pop()

    def rename(self, name: str) -> None:
        """Closes the innermost span and opens another in its place."""
        self._book(then=name)
        self._open[-1] = name

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Times a block, or as a decorator a function; closes what an error in it has left open."""
        depth = len(self._open)
        self.enter(name)
        try:
            yield
        finally:
            self._book(then=self._open[depth - 1])
            del self._open[depth:]

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Times a run. The first of a process begins with the process, each later one with the end of the one before."""
        self.rename(UNACCOUNTED)
        try:
            yield
        finally:
            self._begin(elapsed=0.0)

    def restart(self) -> None:
        """Forgets what was before: in a program that does other things too, a run begins with its call."""
        self._begin(elapsed=0.0)

    def elapsed(self) -> float:
        """Returns the seconds since the process started, or since the run before in the same process."""
        return time.perf_counter() - self._began

    def account(self) -> Account:
        """Returns where the time went so far; spans stay open."""
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
    """Returns the seconds since this process was started; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK"), 0.0)
    except (OSError, ValueError, LookupError, AttributeError):
        return 0.0


WALL = WallClock(elapsed=process_age())
