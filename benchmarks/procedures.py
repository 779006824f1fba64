"""Procedures of a comparison: rounds of waiting workers, fresh processes, loss curves, whole commands."""

from __future__ import annotations

import contextlib
import functools
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

from absl import logging

from benchmarks import figures, whole_command
from benchmarks.comparisons import INT8, OWN, PEAK, Contender
from benchmarks.stage import Stage
from benchmarks.workers import Worker, WorkerError

_TRIAL_TEXTS = 256

Turns = Mapping[str, Callable[[], float]]
Samples = dict[str, list[float]]  # by contender: one per round, or per step for curves


def take_turns(stage: Stage, turns: Turns, *, warm_up: bool = True) -> Samples:
    """Warms up every contender by one turn, then measures each in every round; who fails is noted and leaves.

    Every round measures every contender, so that a slow minute of the machine affects all; every other one is in reverse
    order, so that none always follows the same neighbour.
    """
    samples: Samples = {name: [] for name in turns}
    for number in range(0 if warm_up else 1, stage.bench.rounds + 1):
        for name in list(samples) if number % 2 else list(reversed(samples)):
            with stage.noting(name):
                value = turns[name]()
                if number:  # round 0 is the warm-up
                    samples[name].append(value)
            if name in stage.notes:
                del samples[name]
        if number and samples:
            logging.info("round %d: %s", number, ", ".join(f"{name} {values[-1]:.4g}" for name, values in samples.items()))
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


def _in_rounds(stage: Stage, contenders: list[Contender]) -> Samples:
    stage.batch_sizes = _best_batch_sizes(stage, contenders)
    contenders = [contender for contender in contenders if contender.name not in stage.notes]
    with contextlib.ExitStack() as crew:
        workers = stage.start_all(contenders, crew)
        names = stage.comparable(stage.answers_to_check(workers)) if stage.suite.checked else list(workers)
        turns: dict[str, Callable[[], float]] = {
            name: functools.partial(lambda worker: _rate(worker.ask({"run": stage.steps})), workers[name]) for name in names
        }
        measured = [c.precision for c in contenders if c.name in turns and stage.suite.worker in figures.OPERATIONS]
        peaks = {precision: f"{PEAK}, {precision}" for precision in dict.fromkeys(measured) if precision != INT8}
        for precision, name in peaks.items():
            with stage.noting(name):
                worker = crew.enter_context(stage.start_peak(precision))
                worker.ready()
                turns[name] = functools.partial(_peak, worker)
        samples = take_turns(stage, turns)
        stage.peaks = {precision: samples.pop(name) for precision, name in peaks.items() if name in samples}
        return samples


def _peak(worker: Worker) -> float:
    return _number(worker.ask({"run": 1}), "gflops")


def _best_batch_sizes(stage: Stage, contenders: list[Contender]) -> dict[str, int]:
    best = {}
    sizes = stage.comparison.try_batch_sizes
    for contender in [contender for contender in contenders if sizes and contender.batch_size is None]:
        rates = {}
        for batch_size in sizes:
            try:
                with stage.start(contender, batch_size=batch_size, first=_TRIAL_TEXTS) as worker:
                    stage.meet(contender, worker)
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


def _afresh(stage: Stage, contenders: list[Contender]) -> Samples:
    """Starts a process for every turn; separate processes, which train and are not measured, are checked."""
    answers: dict[str, dict[str, Any]] = {}
    for contender in contenders:
        with stage.noting(contender.name), stage.start(contender, suite="train") as worker:
            stage.meet(contender, worker)
            answers.update(stage.answers_to_check({contender.name: worker}))
    names = stage.comparable(answers)
    turn = _FRESH[stage.suite.unit]
    turns = {c.name: functools.partial(turn, stage, c) for c in contenders if c.name in names}
    return take_turns(stage, turns, warm_up=turn is not _rate_after_a_step)


def _first_step(stage: Stage, contender: Contender) -> float:
    with stage.start(contender) as worker:
        _number(worker.ready(), "first_step")
        return time.perf_counter() - worker.started


def _peak_rss(stage: Stage, contender: Contender) -> float:
    with stage.start(contender) as worker:
        stage.meet(contender, worker)
        return _number(worker.ask({"run": stage.steps}), "peak_rss_mb")


def _rate_after_a_step(stage: Stage, contender: Contender) -> float:
    with stage.start(contender) as worker:
        stage.meet(contender, worker)
        worker.ask({"run": 1})
        return _rate(worker.ask({"run": stage.steps}))


_FRESH: Mapping[str, Callable[[Stage, Contender], float]] = {
    "s": _first_step,
    "MB": _peak_rss,
    "examples/s": _rate_after_a_step,
}


def _curves(stage: Stage, contenders: list[Contender]) -> Samples:
    losses: Samples = {}
    with contextlib.ExitStack() as crew:
        workers = stage.start_all(contenders, crew)
        for name in stage.comparable(stage.answers_to_check(workers)):
            with stage.noting(name):
                losses[name] = [_number(workers[name].ask({"run": 1}), "loss") for _ in range(stage.steps)]
    return losses


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
    lengths = comparison.max_seq_length, comparison.batch_size
    return whole_command.Job(data, published, huggingface, *lengths, stage.bench.threads, stage.bench.limits.answer)


def _commands(stage: Stage, contenders: list[Contender]) -> Samples:
    job, bench = _job(stage), stage.bench

    def turn(contender: Contender, job: whole_command.Job) -> float:
        library, output = contender.library, bench.materials.new_folder()
        line = job.own(output) if library == OWN else job.peer(bench.environments.commands[library][0], output)
        done = job.run(library, line, output)
        stage.finished.setdefault(contender.name, []).append(done)
        stage.versions[contender.name] = done.versions
        return done.seconds

    turns = {contender.name: functools.partial(turn, contender, job) for contender in contenders if job}
    return take_turns(stage, turns, warm_up=False)


def _evaluations(stage: Stage, contenders: list[Contender]) -> Samples:
    """Evaluates as many checkpoints of a run as each contender says, by its own command."""
    job, materials = _job(stage), stage.bench.materials
    if job is None:
        return {}
    run = materials.new_folder()
    counts = {contender.name: int(contender.flags["checkpoints"]) for contender in contenders}
    turns = {name: lambda count=count: job.evaluate(run, count, materials.new_folder()) for name, count in counts.items()}
    try:
        job.train(run, max(counts.values()))
        return take_turns(stage, turns, warm_up=False)
    except WorkerError as error:
        for name in counts:
            stage.note(name, f"failed: no checkpoints to evaluate: {error}")
        return {}
    finally:
        shutil.rmtree(run, ignore_errors=True)  # a gigabyte


PROCEDURES: Mapping[str, Callable[[Stage, list[Contender]], Samples]] = {
    "rounds": _in_rounds,
    "fresh": _afresh,
    "curves": _curves,
    "commands": _commands,
    "evaluations": _evaluations,
}
