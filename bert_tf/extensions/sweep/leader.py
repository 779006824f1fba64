"""Trains the runs of a plan on the slots of this machine, the longest first, beside leaders of other machines.

A lock in the shared folder claims a run. It ends with the process that trains the run, so that the run of a killed process is
free again, and resumes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import heapq
import itertools
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import psutil

from bert_tf.extensions.sweep import RESULTS, schedule, table
from bert_tf.extensions.sweep.plan import PlannedRun
from bert_tf.extensions.sweep.search import Search, is_at_end, pruned
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.runtime import cgroup, diagnosis, forks, nvidia, signals

_PATIENCE_S = 2.0  # before retrying a run that another process holds
_AGAIN_S = 30.0  # before another signal to a run
_MINUTES = 100  # seconds above which times are logged in minutes
_ATTEMPTS = 3  # at a run whose process is killed
_MEMORY = 4 << 30  # bytes that a run on a CPU may take


class Slot(NamedTuple):
    """A part of the machine for one run at a time."""

    environment: Mapping[str, str]  # in addition to that of the leader
    threads: int | None = None  # of the CPU


def slots(count: int | None, environment: Mapping[str, str]) -> list[Slot]:
    """One slot for each visible GPU or part of one (MIG), or `count` of them in turn.

    Without a GPU the cores are divided among `count` slots; by default a slot has a core and 4 GB of free memory at least.
    """
    shown = environment.get(diagnosis.HIDING)
    gpus = nvidia.listed(nvidia.survey().offered, shown)
    if gpus:
        named = list(dict.fromkeys(map(str.strip, shown.split(",")))) if shown else []  # CUDA's numbers, not nvidia-smi's
        names = nvidia.parts(shown) or named[: len(gpus)] or [gpu.uuid or str(gpu.number) for gpu in gpus]
        return [Slot({diagnosis.HIDING: names[number % len(names)]}) for number in range(count or len(names))]
    cores = cgroup.granted_cpus()
    available = psutil.virtual_memory().available
    _, free = cgroup.memory() or (0, available)  # a container's grant
    count = count or max(1, min(cores, min(free, available) // _MEMORY))
    return [Slot({}, max(1, cores // count)) for _ in range(count)]


@dataclasses.dataclass
class _Started:
    run: PlannedRun
    process: BaseProcess
    since: float
    slots: tuple[int, ...]  # their numbers


def _merged_slot(slots: Sequence[Slot]) -> Slot:
    """One slot of several: all their GPUs, or the threads of all."""
    gpus = list(dict.fromkeys(slot.environment[diagnosis.HIDING] for slot in slots if diagnosis.HIDING in slot.environment))
    threads = [slot.threads for slot in slots if slot.threads is not None]
    environment = {diagnosis.HIDING: ",".join(gpus)} if gpus else {}
    return Slot({**slots[0].environment, **environment}, sum(threads) if threads else None)


class Leader:
    """Starts processes, follows them, and logs progress."""

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        folder: Path,
        slots: Sequence[Slot],
        search: Search | None = None,
        *,
        spread: bool = False,
        start: Callable[[PlannedRun, Path, Mapping[str, str]], BaseProcess] | None = None,
        keep: Callable[[Sequence[table.Result]], object] | None = None,
    ) -> None:
        """`search` has more runs; with `spread` a run has several GPUs that would idle.

        `start` begins the process of a run, by default from a fork server. `keep` has the results so far, in the order of the
        runs; by default it writes sweep.tsv.
        """
        self._runs, self._folder, self._slots, self._search = {run.name: run for run in runs}, folder, slots, search
        self._waiting = {run.name: run for run in sorted(runs, key=lambda run: -run.cost)}  # ties: in the order of the file
        self._spread = spread
        self._started: dict[str, _Started] = {}  # by name
        self._results: dict[str, table.Result] = {}
        self._not_before: dict[str, float] = {}  # of runs that another process holds
        self._killed: dict[str, int] = {}
        self._pruned: set[str] = set()
        self._speeds: list[float] = []  # seconds per cost, of runs that were trained here
        self._start_process = start or _forked()
        self._keep = keep or functools.partial(table.write_table, folder)

    def lead(self) -> list[table.Result]:
        """Returns the results of all runs; after a signal or an error it raises when the processes have saved and ended.

        OutputError if the folder cannot be written.
        """
        for name in (table.LOGS, RESULTS):
            atomic.make_folder(self._folder / name, follows=False)
        table.drop_damaged(self._folder)
        with _interrupted_by_signals():
            try:
                self._read_results(announce=False)
                if self._results:
                    log.info("%d of %d runs have a result already", len(self._results), self._total)
                while True:
                    self._read_results()
                    self._start()
                    if not self._waiting and not self._started:
                        self._waiting.update({name: run for name, run in self._runs.items() if name not in self._results})
                        if not self._waiting:  # else results that could not be read
                            return [self._results[name] for name in self._runs]
                    connection.wait([started.process.sentinel for started in self._started.values()], timeout=1.0)
                    self._collect()
                    self._prune()
            except BaseException:  # a full disk too
                self._stop()
                raise

    @property
    def _total(self) -> int:
        return self._search.total if self._search else len(self._runs)

    def _read_results(self, *, announce: bool = True) -> None:
        """Notes new results, of this leader, of others and of earlier commands."""
        unread = [name for name in table.finished(self._folder) if name not in self._results]
        if self._search:  # the table has runs of other leaders and of earlier commands too
            others = (self._search.known(name) for name in sorted(unread, key=lambda name: (len(name), name)))
            self._runs.update({run.name: run for run in others if run and run.name not in self._runs})
        found = {name: table.read_result(self._folder, name) for name in unread if name in self._runs}
        new = {
            name: table.compared(self._folder, self._runs[name], result, drawn=self._search is not None)
            for name, result in found.items()
            if result is not None
        }
        for name, result in new.items():
            self._results[name] = result
            self._waiting.pop(name, None)
            if self._search:
                self._search.tell(result)
        rest = self._rest() if announce and new else ""
        for name in new if announce else ():
            self._say(self._runs[name], self._results[name], rest)
        if new:
            self._keep([self._results[name] for name in self._runs if name in self._results])

    def _start(self) -> None:
        busy = {number for started in self._started.values() for number in started.slots}
        free = [number for number in range(len(self._slots)) if number not in busy]
        while free:
            run = self._next_planned() or self._next_from_search()
            if run is None:
                return
            count = self._slots_for(run, len(free))
            taken, free = tuple(free[:count]), free[count:]
            del self._waiting[run.name]
            slot = _merged_slot([self._slots[number] for number in taken])
            devices = run.config.devices
            threads = {} if slot.threads is None else {"intra_op_threads": slot.threads, "inter_op_threads": slot.threads}
            threads = {name: value for name, value in threads.items() if getattr(devices, name) is None}
            run_here = dataclasses.replace(run, config=run.config.replaced(threads))
            process = self._start_process(run_here, self._folder, slot.environment)
            self._started[run.name] = _Started(run, process, time.monotonic(), taken)

    def _slots_for(self, run: PlannedRun, free: int) -> int:
        """Slots of the next run: threads that would idle do not change its bits, GPUs do."""
        on_cpu = self._slots[0].threads is not None
        if self._search or not (on_cpu or self._spread):
            return 1
        others = (other for other in self._waiting.values() if other is not run and self._is_ready(other))
        return schedule.share([run, *itertools.islice(others, free)], free, replicas=not on_cpu)

    def _next_planned(self) -> PlannedRun | None:
        for run in self._waiting.values():
            before = self._results.get(run.after or "")
            if before is not None and before.error:
                table.write(self._folder, table.failed(run, f"it starts from the model of {before.name}, which failed"))
            elif self._is_ready(run):
                return run
        return None

    def _is_ready(self, run: PlannedRun) -> bool:
        is_ours = self._not_before.get(run.name, 0.0) <= time.monotonic()
        return is_ours and (run.after is None or run.after in self._results)

    def _next_from_search(self) -> PlannedRun | None:
        """A run of the search: one that seems abandoned, else a new one."""
        if self._search is None:
            return None
        for run in self._search.unfinished():
            self._runs[run.name] = self._waiting[run.name] = run
        next_run = self._next_planned() or self._search.ask()
        if next_run is not None:
            self._runs[next_run.name] = self._waiting[next_run.name] = next_run
        return next_run

    def _prune(self) -> None:
        for started in self._started.values():
            if self._search and started.run.name not in self._pruned and self._search.lags(started.run):
                self._pruned.add(started.run.name)
                started.process.terminate()

    def _collect(self) -> None:
        for started in list(self._started.values()):
            if started.process.exitcode is None:
                continue
            del self._started[started.run.name]
            run, status = started.run, started.process.exitcode
            if status in (table.EXIT_DONE, table.EXIT_FAILED) and table.read_result(self._folder, run.name) is not None:
                if status == table.EXIT_DONE:
                    self._speeds.append((time.monotonic() - started.since) / run.cost)
                continue
            if run.name in self._pruned and not is_at_end(run, self._folder):  # it may have gone on to its last step
                table.write(self._folder, pruned(run, self._folder))
                continue
            self._waiting[run.name] = run
            if status == table.EXIT_TAKEN:
                self._not_before[run.name] = time.monotonic() + _PATIENCE_S
            else:
                self._note_killed(run, status)

    def _note_killed(self, run: PlannedRun, status: int) -> None:
        self._killed[run.name] = self._killed.get(run.name, 0) + 1
        gives_up = self._killed[run.name] == _ATTEMPTS
        log.warning("%s: its process ended with status %d; %s", run.title, status, "giving up" if gives_up else "resuming it")
        if gives_up:
            error = f"its process ended {_ATTEMPTS} times, with status {status}; {table.log_file(self._folder, run.name)}"
            table.write(self._folder, table.failed(run, error))

    def _say(self, run: PlannedRun, result: table.Result, rest: str) -> None:
        metrics = [f"{name.removeprefix('eval_')} {value:.4f}" for name, value in result.metrics.items()]
        trained = f"{', '.join(metrics)} in {result.seconds:.0f} s{' (collapsed)' if result.collapsed else ''}"
        stopped = f"stopped early at step {result.steps}: {', '.join(metrics)}"
        text = f"failed: {result.error}" if result.error else stopped if result.pruned else trained
        log.info("%d of %d: %s: %s%s", len(self._results), self._total, run.title, text, rest)

    def _rest(self) -> str:
        """Estimates the time that is left, by the runs that were trained here."""
        if not self._speeds or not (self._waiting or self._started) or len(self._results) >= self._total:
            return ""
        speed, now = sorted(self._speeds)[len(self._speeds) // 2], time.monotonic()
        ends = [0.0] * len(self._slots)  # when each slot is free
        for started in self._started.values():
            for number in started.slots:
                ends[number] = max(started.run.cost * speed - (now - started.since), 0.0)
        heapq.heapify(ends)
        for run in self._waiting.values():
            heapq.heapreplace(ends, ends[0] + run.cost * speed)
        seconds = max(ends)
        return f"; about {f'{seconds / 60:.0f} min' if seconds > _MINUTES else f'{seconds:.0f} s'} left"

    def _stop(self) -> None:
        processes = [started.process for started in self._started.values()]
        log.warning("stopping: %d runs save a checkpoint after their step", len(processes))
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(_AGAIN_S)
            while process.exitcode is None:  # one that had just begun does not hear the first signal
                process.terminate()
                process.join(_AGAIN_S)


def _forked() -> Callable[[PlannedRun, Path, Mapping[str, str]], BaseProcess]:
    """Processes from a fork server, in which TensorFlow is imported once."""
    context = forks.server_context("bert_tf.extensions.sweep.preload")

    def start(run: PlannedRun, folder: Path, environment: Mapping[str, str]) -> BaseProcess:
        process = context.Process(target=_work, args=(run, folder, dict(environment)), name=run.name)
        with _script_hidden():
            process.start()
        return process

    return start


@contextlib.contextmanager
def _script_hidden() -> Iterator[None]:
    """Keeps multiprocessing from running the user's script in each process, which would start the sweep again."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _work(run: PlannedRun, folder: Path, environment: Mapping[str, str]) -> None:
    from bert_tf.extensions.sweep import worker  # imports TensorFlow, in the fork server

    worker.work(run, folder, environment)


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = {number: signal.signal(number, stop) for number in signals.ending()}
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
