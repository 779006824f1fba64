"""The workers of one comparison: starts, checks and asks them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from absl import logging

from benchmarks import checks
from benchmarks.comparisons import PEAK, SUITES, Comparison, Contender
from benchmarks.environments import Environments, variables
from benchmarks.materials import Materials, workload
from benchmarks.sizes import DEFAULT
from benchmarks.workers import Crew, Limits, Worker, WorkerError

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
    """A running comparison; `notes` (why a contender is not measured) and `versions` are by contender name."""

    def __init__(self, comparison: Comparison, bench: Bench) -> None:
        self.comparison = comparison
        self.suite = SUITES[comparison.suite]
        self.bench = bench
        self.steps = self.suite.steps or bench.steps
        self.threads = comparison.threads or bench.threads
        self.notes: dict[str, str] = {}
        self.versions: dict[str, Mapping[str, str]] = {}

    def present(self) -> list[Contender]:
        missing = self.bench.environments.missing
        for contender in self.comparison.contenders:
            if contender.library in missing:
                self.note(contender.name, f"missing: {missing[contender.library]}")
        return [contender for contender in self.comparison.contenders if contender.library not in missing]

    def note(self, name: str, why: str) -> None:
        self.notes[name] = why
        logging.warning("%s: %s: %s", self.comparison.name, name, why)

    def launch(self, contender: Contender, crew: Crew, **changes: Any) -> Worker:
        """Starts a worker without waiting; `changes` are further arguments of `workload`."""
        content = workload(
            self.comparison,
            contender,
            self.bench.materials,
            threads=self.threads,
            needed_steps=(self.bench.rounds + 1) * self.steps + _SPARE_STEPS,
            **changes,
        )
        return self._start_process(contender.library, content, crew)

    def _start_process(self, library: str, content: dict[str, Any], crew: Crew) -> Worker:
        path = self.bench.materials.write_workload(content)
        command = self.bench.environments.command(library, path)
        return crew.start(
            command, path.with_suffix(".log"), limits=self.bench.limits, environment=variables(library, self.threads)
        )

    def start(self, contender: Contender, crew: Crew, **changes: Any) -> Worker:
        worker = self.launch(contender, crew, **changes)
        self.versions[contender.name] = worker.ready().get("versions", {})
        return worker

    def start_peak(self, crew: Crew) -> Worker:
        worker = self._start_process(PEAK, {"threads": self.threads}, crew)
        worker.ready()
        return worker

    def start_all(self, contenders: list[Contender], crew: Crew, batch_sizes: Mapping[str, int]) -> dict[str, Worker]:
        workers = {}
        for contender in contenders:
            try:
                workers[contender.name] = self.start(contender, crew, batch_size=batch_sizes.get(contender.name))
            except WorkerError as error:
                self.note(contender.name, f"failed: {error}")
        return workers

    def answers_to_check(self, workers: Mapping[str, Worker]) -> dict[str, dict[str, Any]]:
        """Returns each worker's results for the first examples; failing ones are noted."""
        answers = {}
        for name, worker in workers.items():
            try:
                answers[name] = worker.ask({"check": checks.EXAMPLES})
            except WorkerError as error:
                self.note(name, f"failed: {error}")
        return answers

    def comparable(self, answers: Mapping[str, dict[str, Any]]) -> list[str]:
        """Returns the contenders that do the same work as our first one; the others are noted."""
        reference = self.comparison.contenders[0].name
        for name, answer in answers.items():
            why = f"{reference} gave no answer to compare with"
            if reference in answers:
                with_loss = self.comparison.size == DEFAULT
                why = checks.mismatch(answers[reference], answer, with_loss=with_loss) or ""
            if why:
                self.note(name, f"not comparable: {why}")
        return [name for name in answers if name not in self.notes]
