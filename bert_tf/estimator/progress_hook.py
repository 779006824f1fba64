"""Reports the progress of training: log, progress bar, metrics.jsonl, TensorBoard."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from bert_tf import run_layout
from bert_tf.errors import OutputError
from bert_tf.estimator.update import GRADIENT_NORM, LEARNING_RATE, LOSS, SKIPPED_STEPS
from bert_tf.io import atomic, documents, files, progress
from bert_tf.io.log_form import log, published, short
from bert_tf.profiling.step_timer import StepTimer
from bert_tf.profiling.wall_clock import LOG, WALL
from bert_tf.runtime.memory import MemoryUse

tf1 = tf.compat.v1

_PAUSE_S = 0.05
_writers: dict[str, tf1.summary.FileWriter] = {}  # open ones, by folder: each is a thread and an open file


def log_interval(steps: int) -> int:
    """Returns the report interval in steps: at least 20 reports a run, and at least one every 50 steps."""
    return min(50, max(1, steps // 20))


def _opened(folder: str | os.PathLike[str], step: int) -> TextIO | None:
    """Opens the log to continue after `step`, dropping later lines, which will be repeated.

    Returns None, with a warning, on failure: a log must not stop a run.
    """
    path = Path(folder) / run_layout.METRICS
    try:
        _keep_lines_up_to(path, step)
    except OutputError as error:
        log.warning("%s; steps are not logged there", error)
        return None
    return path.open("a", encoding="utf-8")


def _keep_lines_up_to(path: Path, step: int) -> None:
    """Drops lines of later steps and unreadable ones; raises OutputError, also for a folder or a pipe."""
    if not path.exists():
        return
    try:
        with files.open_plain(path) as file:
            text = file.read().decode(errors="replace")
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {files.reason(error).partition(';')[0]}; move it away") from error
    lines = text.split("\n")[:-1]  # drops a line cut off by a kill
    steps = [_step_of(line) for line in lines]
    atomic.write_text(path, "".join(f"{line}\n" for line, of in zip(lines, steps) if of is not None and of <= step))
    if None in steps:
        log.warning("%s: unreadable lines skipped: %d", path, steps.count(None))


def _step_of(line: str) -> int | None:
    try:
        step = documents.parse_json(line)["step"]
    except (ValueError, TypeError, KeyError):
        return None
    return step if isinstance(step, int) else None


class ProgressHook(tf1.train.SessionRunHook):
    """Reports loss, learning rate, examples/s, times and memory to the log, metrics.jsonl and TensorBoard.

    On a terminal, a progress bar shows the time left. `step` includes the steps of earlier runs.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] | None,
        *,
        units: Callable[[int], int],
        total_steps: int,
        every_n_steps: int,
        timer: StepTimer | None = None,
    ) -> None:
        """`units` returns the number of examples up to a step; without `output_dir` only the log is written.

        An earlier hook must fill `timer`.
        """
        self._timer = timer
        self._folder = None if output_dir is None else Path(output_dir)
        self._units = units
        self._total = total_steps
        self._every = every_n_steps
        self._bar: tqdm[Any] | None = None
        self._lines: TextIO | None = None
        self.step = 0

    def begin(self) -> None:
        graph = tf1.get_default_graph()
        names = {"loss": LOSS, "learning_rate": LEARNING_RATE, "gradient_norm": GRADIENT_NORM}
        if SKIPPED_STEPS in {op.name for op in graph.get_operations()}:
            names["skipped_steps"] = SKIPPED_STEPS
        self._watched = {key: graph.get_tensor_by_name(f"{name}:0") for key, name in names.items()}

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Starts counting at the run's step and drops log lines of steps that will be repeated."""
        step = self.step = int(session.run(tf1.train.get_global_step(session.graph)))
        if self._folder is not None:
            self._lines = _opened(self._folder, step)
        self._memory = MemoryUse()
        self._bar = progress.bar(total=self._total, initial=step, unit="step", smoothing=0.05, dynamic_ncols=True)
        self._last_step, self._last_time, self._last_tokens = step, time.perf_counter(), 0

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs:
        return tf1.train.SessionRunArgs(self._watched)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        if self._bar is not None:
            self._bar.update()
        self.step += 1
        if self.step % self._every == 0 or self.step == self._total:
            self._report(run_values.results)

    @WALL.span(LOG)
    def _report(self, values: Mapping[str, np.floating[Any]]) -> None:
        step, now = self.step, time.perf_counter()
        seconds = now - self._last_time
        speed = (self._units(step) - self._units(self._last_step)) / seconds
        self._last_step, self._last_time = step, now
        rates, times = {"examples_per_second": speed}, {}
        if self._timer:
            tokens, self._last_tokens = self._timer.tokens - self._last_tokens, self._timer.tokens
            rates["tokens_per_second"] = tokens / seconds
            times = self._timer.interval()
        if self._folder is not None:
            watched = {name: float(value) for name, value in values.items()}
            self._write(self._folder, {"step": step, **watched, **rates, **times, **self._memory.measure()})
        text = "step %d of %d: loss = %.4f, lr = %.2g, examples/s = %.1f%s%s"
        skipped = f", skipped steps = {values['skipped_steps']}" if "skipped_steps" in values else ""
        costs = (name for name in ("reader_cost", "batch_cost", "communication_cost") if name in times)
        timed = "".join(f", {name} = {times[name] * 1e3:.1f} ms" for name in costs)
        short.info(text, step, self._total, values["loss"], values["learning_rate"], speed, timed, skipped)

    def _write(self, folder: Path, line: Mapping[str, float]) -> None:
        if self._lines is not None:
            self._lines.write(documents.to_json(line) + "\n")  # the norm is NaN or infinite if loss scaling skips a step
            self._lines.flush()
        write_scalars(folder, {name: value for name, value in line.items() if name != "step"}, self.step)

    def end(self, session: tf1.Session) -> None:
        self._end_bar_and_lines()

    def close(self) -> None:
        """Closes what is open, after all hooks; a failed run has no `end`."""
        self._end_bar_and_lines()
        if self._folder is not None:
            close_event_writers(self._folder)

    def _end_bar_and_lines(self) -> None:
        for opened in (self._bar, self._lines):
            if opened is not None:
                opened.close()


def write_scalars(folder: str | os.PathLike[str], scalars: Mapping[str, float], step: int) -> None:
    _write(folder, [tf1.Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()], step)


def write_text(folder: str | os.PathLike[str], name: str, text: str, step: int) -> None:
    _write(folder, [tf1.Summary.Value(tag=name, tensor=tf.make_tensor_proto(text))], step)


def _write(folder: str | os.PathLike[str], values: Sequence[tf1.Summary.Value], step: int) -> None:
    writer = event_writer(folder)
    writer.add_summary(tf1.Summary(value=values), step)
    writer.flush()


def event_writer(folder: str | os.PathLike[str]) -> tf1.summary.FileWriter:
    name = os.fspath(folder)
    if name not in _writers:
        while list(Path(name).glob(f"*.tfevents.{int(time.time())}.*")):  # TensorFlow would empty a file of the same second
            time.sleep(_PAUSE_S)
        with tf.Graph().as_default():  # a new writer requires and writes a default graph
            _writers[name] = tf1.summary.FileWriterCache.get(name)
        _writers[name].reopen()  # type: ignore[attr-defined]  # an earlier training of this process has closed it
    return _writers[name]


def close_event_writers(output_dir: str | os.PathLike[str]) -> None:
    """Closes the event files of a run, of which everything is on the disk already; later events go to new files."""
    run = Path(output_dir)
    for name in [name for name in _writers if run in (Path(name), *Path(name).parents)]:
        with contextlib.suppress(tf.errors.OpError, IndexError):  # the error of a write that was reported then
            _writers.pop(name).close()


class RatesHook(tf1.train.SessionRunHook):
    """Logs global_step/sec and examples/sec in the published format."""

    def __init__(self, batch_size: float, *, every_n_steps: int = 1) -> None:
        """`batch_size` is the examples per step, their mean if steps differ."""
        self._batch_size = batch_size
        self._every = every_n_steps

    def after_create_session(self, session: tf1.Session, coord: object) -> None:
        self._steps, self._since = 0, time.perf_counter()

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        self._steps += 1
        if self._steps % self._every:
            return
        now = time.perf_counter()
        rate = self._every / (now - self._since)
        self._since = now
        published.info("global_step/sec: %g", rate)
        published.info("examples/sec: %g", rate * self._batch_size)
