"""Evaluates due checkpoints during training, with a graph and features that are built once."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints import saved
from bert_tf.errors import OutputError
from bert_tf.estimator import evaluations
from bert_tf.estimator.evaluations import Clock, Target
from bert_tf.estimator.forward import Forward
from bert_tf.estimator.hooks import StopOnSignalHook
from bert_tf.estimator.progress_hook import write_scalars
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.profiling.wall_clock import EVALUATIONS, WALL
from bert_tf.run_layout import BEST, EMA

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class EvaluationPlan:
    """How a run is evaluated during training."""

    every_n_steps: int  # the last step is evaluated too
    make_forward: Callable[[], Forward]  # called once, by the evaluating process; owner closes
    measure: Callable[[Forward], Mapping[str, float]]  # results of the loaded weights by name
    metric: str  # selects the best; lowest if `values.is_cost`
    patience: int = 0  # evaluations without improvement before stop; 0: never
    target: Target | None = None  # result whose first step is recorded; None: none
    stop_at_target: bool = False  # whether training ends there
    begin: int = 0  # step at which a finished run is extended: earlier evaluations end nothing

    def stopped_at(self, output_dir: str | os.PathLike[str], *, up_to: int) -> int | None:
        """Returns the step of an early end, considering steps up to `up_to`; None if the run continues."""
        lines = self._lines(output_dir, up_to)
        ends = (evaluations.stopped_at(lines, self.metric, self.patience), self._reached_at(lines))
        return min((step for step in ends if step is not None), default=None)

    def _lines(self, output_dir: str | os.PathLike[str], up_to: int) -> list[evaluations.Line]:
        lines = evaluations.read_evaluations(output_dir, up_to=up_to)
        return [line for line in lines if evaluations.step_of(line) > self.begin]

    def _reached_at(self, lines: Sequence[evaluations.Line]) -> int | None:
        line = self.target.first(lines) if self.target and self.stop_at_target else None
        return None if line is None else evaluations.step_of(line)

    def reason(self, output_dir: str | os.PathLike[str], step: int) -> str:
        if self.target is not None and self._reached_at(self._lines(output_dir, step)) == step:
            return f"{self.target.metric} reached {self.target.value:g}"
        return f"{self.patience} evaluations in a row without a better {self.metric}"


class EvaluationListener(tf1.train.CheckpointSaverListener):
    """Evaluates checkpoints as they are saved, keeps the best, and ends training that no longer improves.

    All of its state is in evaluations.jsonl, so that a killed run resumes identically. The training graph is not touched.
    The second graph needs GPU memory for another copy of the weights on each device, without moments and gradients.
    With several machines only the chief evaluates; the others wait for it in their next step.
    """

    def __init__(
        self,
        output_dir: str,
        plan: EvaluationPlan,
        *,
        total_steps: int,
        stop: StopOnSignalHook,
        clock: Clock | None = None,
        first: int | None = None,
    ) -> None:
        """`first` is the step to catch up with as the session begins; None if that was done before."""
        self._folder = Path(output_dir)
        self._plan = plan
        self._total = total_steps
        self._stop = stop
        self._clock = clock
        self._first = first

    @functools.cached_property
    def _forward(self) -> Forward:
        return self._plan.make_forward()

    def begin(self) -> None:
        """Evaluates now that this machine's server is up: the others give up if they cannot reach it within ten minutes."""
        if self._first is not None:
            self.catch_up(self._first)

    def catch_up(self, step: int) -> None:
        """Drops evaluations after the resumed step and completes what a kill interrupted there."""
        lines = evaluations.read_evaluations(self._folder, up_to=step)
        evaluations.write(self._folder, lines)
        if step and step not in {line["step"] for line in lines}:
            self.after_save(None, step)
            lines = evaluations.read_evaluations(self._folder, up_to=step)
        elif self._gives_up(step):
            self._stop.end_early()
        self._keep_best(lines, step)  # last: it may be the step whose evaluation was missing

    @WALL.span(EVALUATIONS)
    def after_save(self, session: tf1.Session | None, global_step_value: int) -> bool:
        """Evaluates the checkpoint if due; returns whether training should end now."""
        step = int(global_step_value)
        self._note_time(step)  # first, so that a step interrupted by a kill has its time
        if step % self._plan.every_n_steps and step != self._total:
            return False
        self._forward.load(self._checkpoint(step))
        results = {**self._plan.measure(self._forward), **self._of_average(step)}
        self._note_time(step)  # again, including the evaluation, before its result is on disk
        lines = [*evaluations.read_evaluations(self._folder, up_to=step - 1), evaluations.line(step, results)]
        evaluations.write(self._folder, lines)
        if self._plan.target and self._plan.target.first(lines) is lines[-1]:
            log.info("%s of %g is reached at step %d", *self._plan.target, step)
        self._report(step, results, is_best=evaluations.best(lines, self._plan.metric) is lines[-1])
        self._keep_best(lines, step)
        return self._gives_up(step) and self._stop.end_early()

    def _of_average(self, step: int) -> dict[str, float]:
        """Returns the moving average's results, such as `eval_accuracy_ema`; empty if the run has none."""
        if saved.checkpoint(self._folder, EMA) != saved.moving_average(self._checkpoint(step)):
            return {}
        self._forward.load(saved.moving_average(self._checkpoint(step)))
        return {f"{name}_{EMA}": value for name, value in self._plan.measure(self._forward).items()}

    def _note_time(self, step: int) -> None:
        if self._clock:
            self._clock.write(step)

    def _checkpoint(self, step: int) -> str:
        return str(self._folder / run_layout.of_step(run_layout.CHECKPOINTS, step))

    def _report(self, step: int, results: Mapping[str, float], *, is_best: bool) -> None:
        text = ", ".join(f"{name} = {value:.4f}" for name, value in results.items())
        log.info("evaluation at step %d: %s%s", step, text, " (best so far)" if is_best else "")
        write_scalars(self._folder / run_layout.EVALUATION_EVENTS, results, step)

    def _keep_best(self, lines: Sequence[evaluations.Line], step: int) -> None:
        """Makes the folder of the best checkpoint agree with the evaluations up to a step; OutputError if its own is lost."""
        line, prefix = evaluations.best(lines, self._plan.metric), saved.checkpoint(self._folder, BEST)
        kept = saved.step_of(prefix or "")
        if 0 <= kept <= step and kept not in map(evaluations.step_of, lines):
            path = self._folder / run_layout.EVALUATIONS
            raise OutputError(f"{path}: has no line of step {kept}, the best; restore it, or move {BEST}/ out of the run")
        best = self._checkpoint(evaluations.step_of(line)) if line else ""
        if prefix is not None and Path(prefix).name == Path(best).name:
            saved.go_on_from(prefix)  # a kill may have left the previous one
            return
        if line and Path(f"{best}.index").is_file():
            self._replace_best(self._forward.load(best))
        elif prefix is not None:  # the run was resumed from an earlier step, or an earlier version kept one without a value
            log.warning("%s: deleted, no evaluation of the run makes it the best", prefix)
            shutil.rmtree(self._folder / BEST, ignore_errors=True)

    def _replace_best(self, step: int) -> None:
        """Saves the loaded weights as the best and deletes the previous ones; a complete checkpoint is listed at all times."""
        best = atomic.make_folder(self._folder / BEST, follows=False) / run_layout.of_step(run_layout.CHECKPOINTS, step)
        self._forward.save(best)
        saved.keep_only(best, self._folder)

    def _gives_up(self, step: int) -> bool:
        return self._plan.stopped_at(self._folder, up_to=step) is not None
