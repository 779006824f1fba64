"""Training hooks: log and progress bar, checkpoints, stop on request."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from bert_tf import documents, progress
from bert_tf.errors import LostPeerError, OutputError
from bert_tf.estimator import metrics_log
from bert_tf.estimator.pace import Pace
from bert_tf.estimator.update import GRADIENT_NORM, LEARNING_RATE, LOSS, SKIPPED_STEPS, STOP, STOPS
from bert_tf.log_form import short
from bert_tf.profiling.timing.step_timer import StepTimer
from bert_tf.profiling.timing.wall_clock import LOG, SAVES, WALL
from bert_tf.runtime.closing import close_in_background
from bert_tf.runtime.memory_use import MemoryUse
from bert_tf.runtime.peers import START_AGAIN, Watch

tf1 = tf.compat.v1


_SIGNAL, _EARLY = 1.0, 0.5  # what a machine tells the others; they are added up, and one at most ends early


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
        del coord
        step = self.step = int(session.run(tf1.train.get_global_step(session.graph)))
        if self._folder is not None:
            self._lines = metrics_log.opened(self._folder, step)
        self._memory = MemoryUse()
        self._bar = progress.bar(total=self._total, initial=step, unit="step", smoothing=0.05, dynamic_ncols=True)
        self._last_step, self._last_time, self._last_tokens = step, time.perf_counter(), 0

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs:
        del run_context
        return tf1.train.SessionRunArgs(self._watched)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_context
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
        rates = {"examples_per_second": speed, **self._tokens_per(seconds)}
        times = self._timer.interval() if self._timer else {}
        if self._folder is not None:
            watched = {name: float(value) for name, value in values.items()}
            self._write(self._folder, {"step": step, **watched, **rates, **times, **self._memory.read()})
        text = "step %d of %d: loss = %.4f, lr = %.2g, examples/s = %.1f%s%s"
        skipped = f", skipped steps = {values['skipped_steps']}" if "skipped_steps" in values else ""
        timed = _timed(times)
        short.info(text, step, self._total, values["loss"], values["learning_rate"], speed, timed, skipped)

    def _tokens_per(self, seconds: float) -> dict[str, float]:
        if self._timer is None:
            return {}
        tokens, self._last_tokens = self._timer.tokens - self._last_tokens, self._timer.tokens
        return {"tokens_per_second": tokens / seconds}

    def _write(self, folder: Path, line: Mapping[str, float]) -> None:
        if self._lines is not None:
            self._lines.write(documents.to_json(line) + "\n")  # the norm of a step that loss scaling skips is not a number
            self._lines.flush()
        write_scalars(folder, {name: value for name, value in line.items() if name != "step"}, self.step)

    def end(self, session: tf1.Session) -> None:
        del session
        self.close()

    def close(self) -> None:
        """Closes the bar and the file if open, since a failed run has no `end`."""
        for opened in (self._bar, self._lines):
            if opened is not None:
                opened.close()


class CheckpointHook(tf1.train.CheckpointSaverHook):
    """Saves checkpoints during a run and at its end; `saver.RunSaver` decides what is saved."""

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        *,
        every_n_steps: Sequence[int] = (),
        by_pace: bool = False,
        listeners: Sequence[tf1.train.CheckpointSaverListener] = (),
    ) -> None:
        """Saves multiples of any of `every_n_steps`, and with `by_pace` also when `pace.Pace` asks for it.

        Listeners hear of each checkpoint and may end training.
        """
        super().__init__(os.fspath(output_dir), save_steps=1, save_graph_def=False, listeners=list(listeners))
        self._every = tuple(every_n_steps)
        self._by_pace = by_pace
        self._pace: Pace | None = None
        self._step = 0
        self._drawing: threading.Thread | None = None

    def begin(self) -> None:
        _writer(self._checkpoint_dir)
        super().begin()
        self._global_step_tensor = tf1.train.get_global_step()  # as the other hooks: a session prepares for each set of fetches

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Saves nothing: the starting point is on disk already."""
        del coord
        self._step = int(session.run(self._global_step_tensor))
        self._pace = Pace(self._get_saver(), self._step) if self._by_pace else None
        self._timer.update_last_triggered_step(self._step)

    def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
        """Fetches nothing, since steps are counted here; writes TensorBoard's graph during the first step."""
        if self._drawing is None:
            graph, writer = run_context.session.graph, _writer(self._checkpoint_dir)
            self._drawing = threading.Thread(target=writer.add_graph, args=[graph], name="graph for TensorBoard")
            self._drawing.start()  # it is Python's work, and the session's that prepares the step is not

    def end(self, session: tf1.Session) -> None:
        if self._drawing is not None:
            self._drawing.join()
        super().end(session)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_values
        self._step += 1
        if any(self._step % steps == 0 for steps in self._every) or (self._pace and self._pace.is_due(self._step)):
            self._timer.update_last_triggered_step(self._step)
            if self._save(run_context.session, self._step):
                run_context.request_stop()

    @WALL.span(SAVES)
    def _save(self, session: tf1.Session, step: int) -> bool:
        try:
            ends = super()._save(session, step)
        except tf.errors.OutOfRangeError as error:  # TensorFlow's name for EFBIG; a session takes it for the end of the data
            reason = os.strerror(errno.EFBIG)
            raise OutputError(f"{self._checkpoint_dir}: cannot write: {reason}; the last whole checkpoint is kept") from error
        if self._pace:
            self._pace.saved(step)
        return ends


class StopOnSignalHook(tf1.train.SessionRunHook):
    """Ends training with a checkpoint after the current step on Ctrl-C or SIGTERM; a second Ctrl-C ends it at once.

    With several machines it also ends training early: what one of them decides, the others learn in their next step.
    `stopped_by` is the signal received, or None.
    """

    def __init__(self, *, together: bool = False) -> None:
        """With `together`, machines stop after the same step even if the signal reaches them at different times."""
        self._together = together
        self._early = False
        self.stopped_by: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Installs the handlers, only in the main thread, since Python delivers signals to no other."""
        del session, coord
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._remember)

    def _remember(self, number: int, frame: Any) -> None:
        del frame
        self.stopped_by = signal.Signals(number)
        self.release()

    def end_early(self) -> bool:
        """Requests the end without a signal; returns whether training can end now, without another step."""
        self._early = True
        return not self._together

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        """Shares the stop request with the other machines and fetches theirs."""
        if not self._together:
            return None
        told, all_told = (run_context.session.graph.get_tensor_by_name(f"{name}:0") for name in (STOP, STOPS))
        return tf1.train.SessionRunArgs(all_told, feed_dict={told: self._known()})

    def _known(self) -> float:
        return _SIGNAL * (self.stopped_by is not None) + _EARLY * self._early

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        known = run_values.results if self._together else self._known()
        if known >= _SIGNAL and self.stopped_by is None:
            self.stopped_by = signal.SIGTERM  # of another machine
        if known:
            run_context.request_stop()

    def end(self, session: tf1.Session) -> None:
        del session
        self.release()

    def release(self) -> None:
        while self._previous:
            signal.signal(*self._previous.popitem())


class EndHook(tf1.train.SessionRunHook):
    """Calls a function after the last step, before it is saved, unless a signal ended training."""

    def __init__(self, do: Callable[[], None], stop: StopOnSignalHook) -> None:
        """`do` starts the next phase ahead of time; if it fails, it fails again and reports when needed."""
        self._do = do
        self._stop = stop

    def end(self, session: tf1.Session) -> None:
        """Calls the function and ignores errors, which must not cost the last checkpoint."""
        del session
        if self._stop.stopped_by is None:
            with contextlib.suppress(Exception):
                self._do()


class WatchHook(tf1.train.SessionRunHook):
    """With several machines: ends the watch at the last step, after which each may leave at any time.

    A session that TensorFlow recreates after a loss would train alone or wait forever, so it is refused.
    """

    def __init__(self, watch: Watch, steps: int) -> None:
        self._created = False
        self._watch = watch
        self._left = steps

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Raises LostPeerError for a second session, since the first was lost."""
        del session, coord
        if self._created:
            raise LostPeerError(f"the connection to the other machines was lost; {START_AGAIN}")
        self._created = True

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        del run_values
        self._left -= 1
        if self._left <= 0 or run_context.stop_requested:
            self._watch.stop()

    def end(self, session: tf1.Session) -> None:
        """Continues without waiting for TensorFlow."""
        close_in_background(session)


def write_scalars(folder: str | os.PathLike[str], scalars: Mapping[str, float], step: int) -> None:
    _write(folder, [tf1.Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()], step)


def write_text(folder: str | os.PathLike[str], name: str, text: str, step: int) -> None:
    _write(folder, [tf1.Summary.Value(tag=name, tensor=tf.make_tensor_proto(text))], step)


def _write(folder: str | os.PathLike[str], found: Sequence[tf1.Summary.Value], step: int) -> None:
    writer = _writer(folder)
    writer.add_summary(tf1.Summary(value=found), step)
    writer.flush()


def _writer(folder: str | os.PathLike[str]) -> tf1.summary.FileWriter:
    with tf.Graph().as_default():  # a new writer writes the default graph, and wants one
        return tf1.summary.FileWriterCache.get(os.fspath(folder))


def _timed(times: Mapping[str, float]) -> str:
    """Formats times for the log, in milliseconds."""
    shown = (name for name in ("reader_cost", "batch_cost", "communication_cost") if name in times)
    return "".join(f", {name} = {times[name] * 1e3:.1f} ms" for name in shown)
