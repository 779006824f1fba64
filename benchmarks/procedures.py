"""Procedures of a comparison: rounds of waiting workers, fresh processes, loss curves, whole commands."""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from absl import logging

from benchmarks import whole_command
from benchmarks.comparisons import OWN, PEAK, Contender
from benchmarks.stage import Stage
from benchmarks.workers import Crew, WorkerError, variables

_TRIAL_TEXTS = 256

Turns = Mapping[str, Callable[[], float]]


class Measured(NamedTuple):
    """Result of a procedure."""

    samples: dict[str, list[float]]  # by contender: one per round, or per step for curves
    batch_sizes: Mapping[str, int] = MappingProxyType({})  # of contenders with a chosen one
    peak: Sequence[float] = ()  # GFLOP/s, one per round if measured
    commands: Mapping[str, Sequence[whole_command.Finished]] = MappingProxyType({})  # by contender, one per turn


def take_turns(contenders: Turns, *, rounds: int, warm_up: bool = True) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Warms up every contender by one turn, then measures `rounds` turns of each; a `WorkerError` ends its part.

    Returns one sample per round of each contender that finished all rounds, and why the others did not.

    Every round measures every contender, so that a slow minute of the machine affects all; every other one is in reverse
    order, so that none always follows the same neighbour.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    failures: dict[str, str] = {}
    for number in range(0 if warm_up else 1, rounds + 1):
        order = list(samples) if number % 2 else list(reversed(samples))
        for name in order:
            try:
                value = contenders[name]()
            except WorkerError as error:
                failures[name] = str(error)
                del samples[name]
                logging.warning("%s: %s", name, error)
                continue
            if number:  # round 0 is the warm-up
                samples[name].append(value)
        if number and samples:
            logging.info("round %d: %s", number, ", ".join(f"{name} {values[-1]:.4g}" for name, values in samples.items()))
    return samples, failures


def _turns(stage: Stage, turns: Turns, *, warm_up: bool = True) -> dict[str, list[float]]:
    samples, failures = take_turns(turns, rounds=stage.bench.rounds, warm_up=warm_up)
    stage.notes.update({name: f"failed: {why}" for name, why in failures.items()})
    return samples


def _number(answer: Mapping[str, Any], key: str) -> float:
    try:
        return float(answer[key])
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerError(f"answered without {key}: {dict(answer)}") from error


def _rate(answer: Mapping[str, Any]) -> float:
    try:
        return _number(answer, "examples") / _number(answer, "seconds")
    except ZeroDivisionError as error:
        raise WorkerError(f"answered without seconds: {dict(answer)}") from error


def _in_rounds(stage: Stage, contenders: list[Contender]) -> Measured:
    batch_sizes = _best_batch_sizes(stage, contenders)
    contenders = [contender for contender in contenders if contender.name not in stage.notes]
    with Crew() as crew:
        workers = stage.start_all(contenders, crew, batch_sizes)
        names = stage.comparable(stage.answers_to_check(workers)) if stage.suite.checked else list(workers)
        turns: dict[str, Callable[[], float]] = {
            name: functools.partial(lambda worker: _rate(worker.ask({"run": stage.steps})), workers[name]) for name in names
        }
        with stage.noting(PEAK):
            if turns and stage.suite.worker == "train":
                worker = stage.start_peak(crew)
                turns[PEAK] = lambda: _number(worker.ask({"run": 1}), "gflops")
        samples = _turns(stage, turns)
        return Measured(samples, batch_sizes, samples.pop(PEAK, ()))


def _best_batch_sizes(stage: Stage, contenders: list[Contender]) -> dict[str, int]:
    best = {}
    for contender in contenders if stage.comparison.try_batch_sizes else ():
        rates = {}
        for batch_size in stage.comparison.try_batch_sizes:
            try:
                with Crew() as crew:
                    worker = stage.start(contender, crew, batch_size=batch_size, first=_TRIAL_TEXTS)
                    worker.ask({"run": stage.steps})  # warm-up
                    rates[batch_size] = _rate(worker.ask({"run": stage.steps}))
            except WorkerError as error:
                logging.warning("%s at batch size %d: %s", contender.name, batch_size, error)
        if rates:
            best[contender.name] = max(rates, key=lambda batch_size: rates[batch_size])
            tried = ", ".join(f"{size}: {rate:.4g}" for size, rate in rates.items())
            logging.info("%s: best batch size %d (%s)", contender.name, best[contender.name], tried)
        else:
            stage.note(contender.name, "failed at every batch size")
    return best


def _afresh(stage: Stage, contenders: list[Contender]) -> Measured:
    """Starts a process for every turn; separate processes, which train and are not measured, are checked."""
    answers: dict[str, dict[str, Any]] = {}
    for contender in contenders:
        with Crew() as crew, stage.noting(contender.name):
            worker = stage.start(contender, crew, suite="train")
            answers.update(stage.answers_to_check({contender.name: worker}))
    names = stage.comparable(answers)
    turn = _first_step if stage.suite.worker == "start" else _peak_rss
    turns = {c.name: functools.partial(turn, stage, c) for c in contenders if c.name in names}
    return Measured(_turns(stage, turns))


def _first_step(stage: Stage, contender: Contender) -> float:
    with Crew() as crew:
        worker = stage.launch(contender, crew)
        _number(worker.ready(), "first_step")
        return time.perf_counter() - worker.started


def _peak_rss(stage: Stage, contender: Contender) -> float:
    with Crew() as crew:
        return _number(stage.start(contender, crew).ask({"run": stage.steps}), "peak_rss_mb")


def _curves(stage: Stage, contenders: list[Contender]) -> Measured:
    losses: dict[str, list[float]] = {}
    with Crew() as crew:
        workers = stage.start_all(contenders, crew, {})
        for name in stage.comparable(stage.answers_to_check(workers)):
            with stage.noting(name):
                losses[name] = [_number(workers[name].ask({"run": 1}), "loss") for _ in range(stage.steps)]
    return Measured(losses)


def _job(stage: Stage) -> whole_command.Job | None:
    """Returns the job of whole commands; None, with a note for each contender, if MRPC's data is missing."""
    materials, comparison = stage.bench.materials, stage.comparison
    on_sample = bool(comparison.workload.get("sample"))
    data = whole_command.SAMPLE if on_sample else materials.folder(comparison.texts).resolve()
    if data == whole_command.SAMPLE and not on_sample:
        for contender in comparison.contenders:
            stage.note(contender.name, "needs the data of MRPC: --data_dir")
        return None
    published, huggingface = (make(comparison.size, comparison.texts) for make in (materials.published, materials.huggingface))
    return whole_command.Job(data, published, huggingface, comparison.max_seq_length, comparison.batch_size)


def _commands(stage: Stage, contenders: list[Contender]) -> Measured:
    job, bench = _job(stage), stage.bench
    finished: dict[str, list[whole_command.Finished]] = {contender.name: [] for contender in contenders}

    def turn(contender: Contender, job: whole_command.Job) -> float:
        library, output = contender.library, bench.materials.new_folder()
        is_own = library == OWN
        line = whole_command.own(job, output) if is_own else whole_command.peer(bench.environments.python(library), job, output)
        environment = variables(library, bench.threads)
        done = whole_command.run(library, line, output, environment=environment, limit=bench.limits.answer)
        finished[contender.name].append(done)
        stage.versions[contender.name] = done.versions
        return done.seconds

    turns = {contender.name: functools.partial(turn, contender, job) for contender in contenders if job}
    return Measured(_turns(stage, turns, warm_up=False), commands=finished)


def _evaluations(stage: Stage, contenders: list[Contender]) -> Measured:
    """Evaluates as many checkpoints of a run as each contender says, by its own command."""
    job = _job(stage)
    if job is None:
        return Measured({})
    bench = stage.bench
    run, environment = bench.materials.new_folder(), variables(OWN, bench.threads)
    counts = {contender.name: int(contender.flags["checkpoints"]) for contender in contenders}

    def turn(checkpoints: int) -> float:
        output = bench.materials.new_folder()
        return whole_command.evaluate(job, run, checkpoints, output, environment=environment, limit=bench.limits.answer)

    try:
        whole_command.train(job, run, max(counts.values()), environment=environment, limit=bench.limits.answer)
        return Measured(_turns(stage, {name: functools.partial(turn, count) for name, count in counts.items()}, warm_up=False))
    except WorkerError as error:
        for name in counts:
            stage.note(name, f"failed: no checkpoints to evaluate: {error}")
        return Measured({})
    finally:
        shutil.rmtree(run, ignore_errors=True)  # a gigabyte


PROCEDURES: Mapping[str, Callable[[Stage, list[Contender]], Measured]] = {
    "rounds": _in_rounds,
    "fresh": _afresh,
    "curves": _curves,
    "commands": _commands,
    "evaluations": _evaluations,
}
