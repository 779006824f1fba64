"""What happens between training steps: log and progress bar, checkpoints, a stop on request."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from bert_tf import atomic
from bert_tf.errors import OutputError
from bert_tf.estimator.update import BEFORE_SAVING, GRADIENT_NORM, LEARNING_RATE, LOSS, SKIPPED_STEPS

tf1 = tf.compat.v1

METRICS_FILE = "metrics.jsonl"


class ProgressHook(tf1.train.SessionRunHook):
    """Reports loss, learning rate and examples/s: to the log, to metrics.jsonl and to TensorBoard.

    On a terminal a progress bar shows the time left; elsewhere there are plain lines.

    Attributes:
      step: steps taken, those of earlier runs included.
    """

    def __init__(self, output_dir: str | os.PathLike[str], *, batch_size: int, total_steps: int, every_n_steps: int) -> None:
        """Prepares the reports.

        Args:
          output_dir: folder of metrics.jsonl and of the event file.
          batch_size: examples of one step.
          total_steps: the last step.
          every_n_steps: how often to report.
        """
        self._folder = Path(output_dir)
        self._batch_size = batch_size
        self._total = total_steps
        self._every = every_n_steps
        self._bar: tqdm[Any] | None = None
        self._lines: TextIO | None = None
        self.step = 0

    def begin(self) -> None:
        """Finds the tensors to watch."""
        graph = tf1.get_default_graph()
        names = {"loss": LOSS, "learning_rate": LEARNING_RATE, "gradient_norm": GRADIENT_NORM}
        if SKIPPED_STEPS in {op.name for op in graph.get_operations()}:
            names["skipped_steps"] = SKIPPED_STEPS
        self._watched = {key: graph.get_tensor_by_name(f"{name}:0") for key, name in names.items()}
        self._summaries = tf1.summary.FileWriterCache.get(os.fspath(self._folder))

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Starts counting where the run starts, and forgets lines of steps that will be taken again."""
        del coord
        step = self.step = int(session.run(tf1.train.get_global_step(session.graph)))
        _keep_lines_up_to(self._folder / METRICS_FILE, step)
        self._lines = (self._folder / METRICS_FILE).open("a", encoding="utf-8")
        self._bar = tqdm(total=self._total, initial=step, unit="step", disable=not sys.stderr.isatty(), smoothing=0.05)
        self._last_step, self._last_time = step, time.perf_counter()

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs:
        """Asks for the watched values."""
        del run_context
        return tf1.train.SessionRunArgs(self._watched)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        """Moves the bar, and reports where it is time."""
        del run_context
        self._bar.update()
        self.step += 1
        if self.step % self._every == 0 or self.step == self._total:
            self._report(run_values.results)

    def _report(self, values: Mapping[str, np.floating[Any]]) -> None:
        step, now = self.step, time.perf_counter()
        rate = (step - self._last_step) / (now - self._last_time)
        self._last_step, self._last_time = step, now
        line = {"step": step, **{k: float(v) for k, v in values.items()}, "examples_per_second": rate * self._batch_size}
        # The norm of a step that loss scaling skips is no number, and JSON has no word for that.
        self._lines.write(json.dumps({k: v if math.isfinite(v) else None for k, v in line.items()}) + "\n")
        self._lines.flush()
        scalars = {name: value for name, value in line.items() if name != "step"}
        summary = tf1.Summary(value=[tf1.Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()])
        self._summaries.add_summary(summary, step)
        text = "step %d of %d: loss = %.4f, learning rate = %.3g, examples/s = %.1f, steps/s = %.2f%s"
        skipped = f", skipped steps = {values['skipped_steps']}" if "skipped_steps" in values else ""
        with tqdm.external_write_mode():
            logging.info(
                text, step, self._total, values["loss"], values["learning_rate"], rate * self._batch_size, rate, skipped
            )

    def end(self, session: tf1.Session) -> None:
        """Closes bar and file."""
        del session
        self.close()

    def close(self) -> None:
        """Closes bar and file where they are open; a run that fails has no `end`."""
        for opened in (self._bar, self._lines):
            if opened is not None:
                opened.close()


class CheckpointHook(tf1.train.CheckpointSaverHook):
    """Saves everything on the way, and at the last step only what the trained model needs.

    The optimizer's moments are two thirds of a checkpoint, and of no use once training is over.
    """

    def __init__(self, output_dir: str | os.PathLike[str], *, every_n_steps: int, total_steps: int, keep_slots: bool) -> None:
        """Prepares the savers.

        Args:
          output_dir: the folder.
          every_n_steps: how often to save.
          total_steps: the last step.
          keep_slots: whether the last checkpoint keeps the moments.
        """
        super().__init__(os.fspath(output_dir), save_steps=every_n_steps, save_graph_def=False)
        self._final_step = total_steps
        self._saving_step = 0
        self._keep_slots = keep_slots

    def begin(self) -> None:
        """Builds the saver of the last step."""
        super().begin()
        kept = tf1.global_variables() if self._keep_slots else [*tf1.trainable_variables(), tf1.train.get_global_step()]
        self._final_saver = tf1.train.Saver(kept, save_relative_paths=True)

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Saves nothing: what the run starts from is on disk already."""
        del coord
        self._timer.update_last_triggered_step(session.run(self._global_step_tensor))

    def _get_saver(self) -> tf1.train.Saver:
        saver = super()._get_saver()
        if self._saving_step < self._final_step:
            return saver
        self._final_saver.recover_last_checkpoints(saver.last_checkpoints)
        return self._final_saver

    def _save(self, session: tf1.Session, step: int) -> bool:
        self._saving_step = step
        session.run(tf1.get_collection(BEFORE_SAVING))
        try:
            return super()._save(session, step)
        except tf.errors.OutOfRangeError as error:  # TensorFlow's name for EFBIG; a session takes it for the end of the data
            reason = os.strerror(errno.EFBIG)
            raise OutputError(f"{self._checkpoint_dir}: cannot write: {reason}; the last whole checkpoint is kept") from error


class StopOnSignalHook(tf1.train.SessionRunHook):
    """Ends training after the current step, with a checkpoint, on Ctrl-C or SIGTERM; a second Ctrl-C ends it at once.

    Attributes:
      stopped_by: the signal that came, or None.
    """

    def __init__(self) -> None:
        """Prepares the hook; signals are caught from the first step to the last."""
        self.stopped_by: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Catches the signals."""
        del session, coord
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._remember)

    def _remember(self, number: int, frame: Any) -> None:
        del frame
        self.stopped_by = signal.Signals(number)
        self.release()

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        """Asks for the end where a signal came."""
        del run_values
        if self.stopped_by is not None:
            run_context.request_stop()

    def end(self, session: tf1.Session) -> None:
        """Gives the signals back."""
        del session
        self.release()

    def release(self) -> None:
        """Restores the handlers that were there before."""
        while self._previous:
            signal.signal(*self._previous.popitem())


class CollectHook(tf1.train.SessionRunHook):
    """Keeps what a graph computes for every batch.

    Attributes:
      rows: one array for each fetched tensor, batches joined.
    """

    def __init__(self, **tensors: str) -> None:
        """Prepares the hook.

        Args:
          **tensors: name of a graph tensor by the name that its rows get.
        """
        self._names = tensors
        self._batches: list[Mapping[str, np.ndarray]] = []

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs:
        """Asks for the tensors."""
        graph = run_context.session.graph
        return tf1.train.SessionRunArgs({key: graph.get_tensor_by_name(f"{n}:0") for key, n in self._names.items()})

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        """Keeps them."""
        del run_context
        self._batches.append(run_values.results)

    @property
    def rows(self) -> dict[str, np.ndarray]:
        """Returns the collected arrays."""
        return {key: np.concatenate([batch[key] for batch in self._batches]) for key in self._names}


def _keep_lines_up_to(path: Path, step: int) -> None:
    if path.is_file():
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # what follows the last line end was cut off by a kill
        atomic.write_text(path, "".join(f"{line}\n" for line in lines if json.loads(line)["step"] <= step))
