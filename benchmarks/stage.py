"""The workers of one comparison: starts and asks them, and checks that they do the same work before they are timed."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from benchmarks.comparisons import PEAK, SUITES, Comparison, Contender
from benchmarks.figures import DEFAULT
from benchmarks.materials import Materials, workload
from benchmarks.texts import EXAMPLES
from benchmarks.whole_command import Finished
from benchmarks.workers import Environments, Limits, Worker, WorkerError, variables

LOSS_TOLERANCE = 1e-3
VECTORS_TOLERANCE = 1e-4  # between float32 vectors
LEAST_COSINE = 0.95  # between float32 vectors and vectors in another number format
_SPARE_STEPS = 10  # a library that counts the first step otherwise does not come to its end too soon


@dataclasses.dataclass(frozen=True)
class Bench:
    """Shared settings of all comparisons of a run."""

    materials: Materials
    environments: Environments
    rounds: int
    steps: int  # training steps of one turn
    threads: int  # of each worker
    limits: Limits = dataclasses.field(default_factory=Limits)


class Stage:
    """A running comparison and what is learned of its contenders, by name; `notes` say why one is not measured."""

    def __init__(self, comparison: Comparison, bench: Bench) -> None:
        self.comparison = comparison
        self.suite = SUITES[comparison.suite]
        self.bench = bench
        self.steps = self.suite.steps or bench.steps
        self.threads = comparison.threads or bench.threads
        self.notes: dict[str, str] = {}
        self.versions: dict[str, Mapping[str, str]] = {}
        self.batch_sizes: Mapping[str, int] = {}  # of contenders with a chosen one
        self.peaks: Mapping[str, Sequence[float]] = {}  # GFLOP/s by precision, one per round, if measured
        self.cosines: dict[str, float] = {}  # lowest cosine to the vectors of our first contender
        self.finished: dict[str, list[Finished]] = {}  # whole commands, one per turn

    def present(self) -> list[Contender]:
        missing = self.bench.environments.missing
        for contender in self.comparison.contenders:
            if contender.library in missing:
                self.note(contender.name, f"missing: {missing[contender.library]}")
        return [contender for contender in self.comparison.contenders if contender.library not in missing]

    def note(self, name: str, why: str) -> None:
        self.notes[name] = why
        logging.warning("%s: %s: %s", self.comparison.name, name, why)

    @contextlib.contextmanager
    def noting(self, name: str) -> Iterator[None]:
        """Notes a worker's failure in the block, which ends with it."""
        try:
            yield
        except WorkerError as error:
            self.note(name, f"failed: {error}")

    def start(self, contender: Contender, **changes: Any) -> Worker:
        """Starts a worker without waiting; `changes` are further arguments of `workload`."""
        needed = (self.bench.rounds + 1) * self.steps + _SPARE_STEPS
        about = {"threads": self.threads, "needed_steps": needed, **changes}
        return self._start(contender.library, workload(self.comparison, contender, self.bench.materials, **about))

    def start_peak(self, precision: str) -> Worker:
        return self._start(PEAK, {"suite": "peak", "precision": precision, "threads": self.threads})

    def _start(self, library: str, content: dict[str, Any]) -> Worker:
        path = self.bench.materials.write_workload(content)
        command, environment = (*self.bench.environments.commands[library], str(path)), variables(library, self.threads)
        return Worker(command, path.with_suffix(".log"), limits=self.bench.limits, environment=environment)

    def meet(self, contender: Contender, worker: Worker) -> None:
        """Waits until a worker is ready, and keeps its versions."""
        self.versions[contender.name] = worker.ready().get("versions", {})

    def start_all(self, contenders: list[Contender], crew: contextlib.ExitStack) -> dict[str, Worker]:
        workers = {}
        for contender in contenders:
            with self.noting(contender.name):
                worker = crew.enter_context(self.start(contender, batch_size=self.batch_sizes.get(contender.name)))
                self.meet(contender, worker)
                workers[contender.name] = worker
        return workers

    def answers_to_check(self, workers: Mapping[str, Worker]) -> dict[str, dict[str, Any]]:
        """Returns each worker's results for the first examples; failing ones are noted."""
        answers = {}
        for name, worker in workers.items():
            with self.noting(name):
                answers[name] = worker.ask({"check": EXAMPLES})
        return answers

    def comparable(self, answers: Mapping[str, dict[str, Any]]) -> list[str]:
        """Returns the contenders that do the same work as our first one; the others are noted."""
        first, *_ = self.comparison.contenders
        same = {contender.name for contender in self.comparison.contenders if contender.precision == first.precision}
        for name, answer in answers.items():
            why: str | None = f"{first.name} gave no answer to compare with"
            if first.name in answers:
                reference, with_loss = answers[first.name], self.comparison.size == DEFAULT
                why = mismatch(reference, answer, with_loss=with_loss, rounds_alike=name in same)
                if "vectors" in answer and not why:
                    self.cosines[name] = lowest_cosine(reference["vectors"], answer["vectors"])
            if why:
                self.note(name, f"not comparable: {why}")
        return [name for name in answers if name not in self.notes]


def mismatch(
    reference: Mapping[str, Any], answer: Mapping[str, Any], *, with_loss: bool, rounds_alike: bool = True
) -> str | None:
    """Compares ours and another answer to {"check": k}; returns why they differ, else None.

    `with_loss` must be False for random weights, whose losses are unrelated, and `rounds_alike` if number formats differ.
    """
    ours, theirs = reference.get("ids"), answer.get("ids")
    if not isinstance(ours, list) or not isinstance(theirs, list) or len(ours) != len(theirs):
        return "no token ids for every example"
    for number, (mine, other) in enumerate(zip(ours, theirs)):
        if mine != other:
            return f"token ids of example {number} are {_excerpt(other)}, not {_excerpt(mine)}"
    vectors, others = reference.get("vectors", []), answer.get("vectors", [])
    if np.shape(vectors) != np.shape(others):
        return f"vectors have the shape {np.shape(others)}, not {np.shape(vectors)}"
    if rounds_alike and not np.allclose(vectors, others, rtol=0.0, atol=VECTORS_TOLERANCE):
        return f"vectors differ by more than {VECTORS_TOLERANCE:g}"
    if vectors and not rounds_alike and lowest_cosine(vectors, others) < LEAST_COSINE:
        return f"cosines to our float32 vectors are below {LEAST_COSINE:g}"
    if not with_loss or reference.get("loss") is None:
        return None
    loss = answer.get("loss")
    if loss is None or not math.isfinite(loss) or abs(loss - reference["loss"]) > LOSS_TOLERANCE:
        return f"loss before training is {loss}, not {reference['loss']}"
    return None


def lowest_cosine(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """Returns the lowest cosine between vectors of the same text, both [E, D]."""
    mine, other = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in map(np.asarray, (ours, theirs)))
    return float((mine * other).sum(axis=1).min())


def _excerpt(ids: list[int]) -> str:
    return f"{len(ids)} ({', '.join(map(str, ids[:6]))}{', ...' * (len(ids) > 6)})"
