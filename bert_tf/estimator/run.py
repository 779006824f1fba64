"""Training with an Estimator, from its newest checkpoint to its last."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints import optimizer_state, saved
from bert_tf.checkpoints.reader import CheckpointReader, problem_of_saved
from bert_tf.errors import CheckpointError, LostPeerError, OutputError
from bert_tf.estimator import api
from bert_tf.estimator.failures import readable_errors
from bert_tf.estimator.hooks import EndHook, ReplicaCheckHook, StopOnSignalHook, WatchHook
from bert_tf.estimator.model_fn import Model, make_model_fn
from bert_tf.estimator.pipeline import InputFn, Phase, train_input_fn
from bert_tf.estimator.progress_hook import ProgressHook, close_event_writers, write_scalars, write_text
from bert_tf.estimator.saver import CheckpointHook, SaverHook, Saving
from bert_tf.estimator.stamps import StepTimingHook
from bert_tf.features.batching import TO_LONGEST, Batching, Schedule
from bert_tf.features.columns import TrainingRows
from bert_tf.io.log_form import log, published
from bert_tf.profiling import timing_file
from bert_tf.profiling.diagnosis import TOO_SHORT, UNKNOWN_SETTING, Setting, diagnose
from bert_tf.profiling.step_timer import StepTimer
from bert_tf.profiling.wall_clock import GRAPH, WALL
from bert_tf.runtime import forks
from bert_tf.runtime.machine import Machine

if TYPE_CHECKING:
    from bert_tf.estimator.evaluation_hook import EvaluationListener, EvaluationPlan
    from bert_tf.runtime.peers import Watch

tf1 = tf.compat.v1

Hook = tf.compat.v1.train.SessionRunHook


@dataclasses.dataclass(frozen=True)
class Training:
    """How to train, apart from the model's own settings."""

    schedule: Schedule
    save_checkpoints_steps: int | None = None  # None: as `saver.Pace` decides
    log_every_n_steps: int = 50
    keep_optimizer_slots: bool = False
    keep_checkpoint_max: int = 5
    check_replicas_every_n_steps: int = 0
    batching: Batching = TO_LONGEST
    evaluation: EvaluationPlan | None = None  # during training
    setting: Setting = UNKNOWN_SETTING  # for the diagnosis afterwards
    then: tuple[Phase, ...] = ()  # phases after the schedule, in the same training
    at_end: Callable[[], None] | None = None  # starts the next phase before the last checkpoint is written; not after a signal
    begin: int = 0  # step of a finished run at which this training extends it

    @property
    def steps(self) -> int:
        return self.schedule.steps + sum(phase.schedule.steps for phase in self.then)

    def units(self, step: int) -> int:
        drawn = 0
        for schedule in (self.schedule, *(phase.schedule for phase in self.then)):
            drawn += schedule.batch_size * min(step, schedule.steps)
            step = max(step - schedule.steps, 0)
        return drawn

    def mean_batch(self, start: int) -> float:
        """Returns the mean number of units per step from `start` to the last step."""
        return (self.units(self.steps) - self.units(start)) / max(self.steps - start, 1)


@dataclasses.dataclass(frozen=True)
class Outcome:
    step: int
    stopped_by: signal.Signals | None = None


def make_estimator(model: Model, output_dir: str | os.PathLike[str], machine: Machine) -> api.Estimator:
    """Returns the machine's Estimator; raises ForkedError if this process cannot compute."""
    forks.begin()
    config = api.RunConfig(
        model_dir=os.fspath(output_dir),
        tf_random_seed=model.seed,
        session_config=machine.session_config,
        train_distribute=machine.strategy,
        device_fn=machine.plan.device_function,
    )
    return api.Estimator(make_model_fn(model), config=config)


def train(
    estimator: api.Estimator,
    features: TrainingRows,
    training: Training,
    *,
    seed: int,
    watchers: Sequence[Hook] = (),
    hooks: Sequence[Hook] = (),
    machine: Machine | None = None,
) -> Outcome:
    """Trains to the last step or to an early end, from the folder's newest checkpoint if there is one.

    `watchers` see the end of a step before anything is logged, saved or evaluated; `hooks` run after the package's own. If
    several machines train together, only the chief writes. Raises TrainingError if loss or gradient are not finite or
    memory runs out, CheckpointError if the newest checkpoint is damaged, OutputError if a file cannot be written.
    """
    folder, steps = estimator.model_dir, training.steps
    writes, watch = machine is None or machine.is_chief, machine.watch if machine else None
    start = _begin(folder, training, writes=writes)
    stop = StopOnSignalHook(together=watch is not None)
    timer = StepTimer(batch_size=training.mean_batch(start), replicas=training.setting.replicas)
    if start >= steps:
        log.info("already trained to step %d of %d: nothing left to train", start, steps)
    # With several machines the chief evaluates what is missing once its server answers the others, which wait for that, and
    # tells them the end with the next step.
    ended = start >= steps or (watch is not None and _ended_early(folder, training, up_to=start - 1))
    listeners = _listeners(folder, training, start, stop, timer, at_once=ended or watch is None) if writes else []
    if ended or (watch is None and _ended_early(folder, training, up_to=start)):
        for flag in filter(None, (getattr(hook, "flag", None) for hook in watchers)):
            log.warning("--%s has no effect: nothing is left to train; name another --output_dir", flag)
        return Outcome(start)
    if start:
        log.info("continuing from step %d of %d", start, steps)
    timing = StepTimingHook(timer, training.setting)
    out_dir = folder if writes else None
    progress = ProgressHook(
        out_dir, units=training.units, total_steps=steps, every_n_steps=training.log_every_n_steps, timer=timer
    )
    saver = _saver_hook(folder, training, together=watch is not None)
    savers = _savers(folder, training, listeners, stop) if writes else []
    between_steps = [timing, saver, *watchers, progress, stop, *_guards(training, watch, start), *savers, *hooks]
    input_fn = train_input_fn(
        features, training.schedule, seed=seed, start_step=start, batching=training.batching, then=training.then
    )
    try:
        stop.install()
        with readable_errors(folder, progress, cleans=writes), contextlib.closing(progress):
            _fit(estimator, input_fn, between_steps, steps, watch)
            _report_timing(out_dir, timing, training.setting)
            if writes:
                _report_saving(folder, saver.saving)
    finally:
        stop.release()
    # With several machines, the chief may still be saving.
    outcome = Outcome(last_step(folder) if writes else progress.step, stop.stopped_by)
    if outcome.step < steps and outcome.stopped_by is None:
        _ended_early(folder, training, up_to=outcome.step)
    return outcome


def _begin(folder: str, training: Training, *, writes: bool) -> int:
    """Returns the step to continue from; a process that writes deletes the leftovers of killed ones."""
    checkpoint = _start(folder, functools.partial(_problem_of, training=training))
    if _step(checkpoint) < training.begin:
        raise CheckpointError(
            f"{folder}: a run extended at step {training.begin}, but no checkpoint of that step or later is complete;"
            " restore one, or train with --overwrite_output_dir"
        )
    if writes and checkpoint:
        saved.go_on_from(checkpoint)
        saved.publish_average(checkpoint)
        optimizer_state.prune(checkpoint, saved.listed(folder) if training.keep_optimizer_slots else [checkpoint])
    return _step(checkpoint)


def _report_timing(folder: str | None, timing: StepTimingHook, setting: Setting) -> None:
    summary = timing.timer.summary()
    diagnosis = diagnose(summary, setting, account=WALL.account())
    log.info("%s", diagnosis.text)
    if folder is not None and (diagnosis.kind != TOO_SHORT or not timing_file.exists(folder)):
        try:
            timing_file.write(folder, summary, diagnosis)
        except OutputError as error:  # the weights are saved already
            log.warning("%s", error)


def _report_saving(folder: str, saving: Saving) -> None:
    share = saving.seconds / WALL.account().seconds
    text = "checkpoints saved: %d, %.1f MB in %.1f s, %.1f %% of the time so far"
    log.info(text, saving.checkpoints, saving.bytes / 1e6, saving.seconds, 100 * share)
    try:
        timing_file.add(folder, timing_file.SAVING, {**dataclasses.asdict(saving), "share": share})
    except OutputError as error:  # the weights are saved already
        log.warning("%s", error)


def _listeners(
    folder: str, training: Training, start: int, stop: StopOnSignalHook, timer: StepTimer, *, at_once: bool
) -> list[EvaluationListener]:
    """Returns the listeners for checkpoints, brought up to date with the run at its first step: `at_once`, or as it begins."""
    if training.evaluation is None:
        return []
    from bert_tf.estimator.evaluation_hook import EvaluationListener
    from bert_tf.estimator.evaluations import Clock

    clock = Clock(folder, start, elapsed=WALL.elapsed, in_steps=lambda: timer.seconds)
    first = None if at_once else start
    listener = EvaluationListener(folder, training.evaluation, total_steps=training.steps, stop=stop, clock=clock, first=first)
    if at_once:
        with readable_errors(folder):
            listener.catch_up(start)
            close_event_writers(folder)  # there may be nothing left to train
    return [listener]


def _ended_early(folder: str, training: Training, *, up_to: int) -> bool:
    """Whether the evaluations up to a step end training; logs it."""
    plan = training.evaluation
    step = plan.stopped_at(folder, up_to=up_to) if plan else None
    if plan is None or step is None:
        return False
    log.info("stopped early at step %d of %d: %s", step, training.steps, plan.reason(folder, step))
    return True


def _guards(training: Training, watch: Watch | None, start: int) -> list[Hook]:
    """Returns the hooks that check replicas and machines; they precede the saver, so that a bad state is not saved."""
    guards: list[Hook] = []
    if training.check_replicas_every_n_steps:
        guards.append(ReplicaCheckHook(training.check_replicas_every_n_steps, start))
    if watch:
        guards.append(WatchHook(watch, training.steps - start))
    return guards


def _saver_hook(folder: str, training: Training, *, together: bool) -> SaverHook:
    return SaverHook(
        total_steps=training.steps,
        keep_slots=training.keep_optimizer_slots,
        keep_max=training.keep_checkpoint_max,
        begin=training.begin,
        restores=together or bool(saved.listed(folder)),  # with several machines all restore the chief's checkpoint
    )


def _savers(folder: str, training: Training, listeners: Sequence[EvaluationListener], stop: StopOnSignalHook) -> list[Hook]:
    """Returns the hooks that decide when to save; `Training.at_end` starts before the last checkpoint is written."""
    evaluated = training.evaluation.every_n_steps if training.evaluation else None
    every = [steps for steps in (training.save_checkpoints_steps, evaluated) if steps]
    saver = CheckpointHook(folder, every_n_steps=every, by_pace=training.save_checkpoints_steps is None, listeners=listeners)
    return [saver] if training.at_end is None else [EndHook(training.at_end, stop), saver]


def report_to_tensorboard(folder: str | os.PathLike[str], results: Mapping[str, float], step: int, *, checkpoint: str) -> None:
    """Adds evaluation results to a run's event files; raises OutputError if they cannot be written."""
    with readable_errors(os.fspath(folder)):
        events = Path(folder) / run_layout.EVALUATION_EVENTS
        write_scalars(events, results, step)
        write_text(events, "checkpoint_path", checkpoint, step)
        close_event_writers(events)
    published.info("Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint)


def require_checkpoint(folder: str | os.PathLike[str]) -> str:
    """Returns the best checkpoint of a run evaluated during training, else the newest; CheckpointError if there is none."""
    checkpoint = saved.best_or_newest(folder)
    if checkpoint is None:
        raise CheckpointError(
            f"{folder}: no trained checkpoint; train first (--do_train), or name its folder with --output_dir"
        )
    return checkpoint


def last_step(folder: str | os.PathLike[str]) -> int:
    """Returns the step of the newest checkpoint, 0 without one; CheckpointError if none of several is complete."""
    return _step(_start(folder, saved.problem_of))


def _start(folder: str | os.PathLike[str], check: Callable[[str], str | None]) -> str | None:
    checkpoint, problem = saved.newest(folder, check)
    listed = Path(folder) / run_layout.LIST
    if checkpoint is None and listed.exists():  # it is written after the checkpoint that it names
        problem = f"{listed}: names a checkpoint that does not exist"
    if problem and saved.is_first(folder):
        log.warning("%s; the first save did not end: training starts over", problem)
        return None
    if problem:
        raise CheckpointError(
            f"{problem}; no complete checkpoint has moments to resume from; to train from the weights of an older one,"
            f" name it with --init_checkpoint, and a new --output_dir; to start over, delete {folder}"
        )
    return checkpoint


def _problem_of(checkpoint: str, *, training: Training) -> str | None:
    """Returns why training cannot continue from a checkpoint, or None; at the step of an end only the weights are needed."""
    problem = problem_of_saved(checkpoint)
    if problem is None and (training.begin or -1) != _step(checkpoint) < training.steps:
        return optimizer_state.problem_of(checkpoint)
    return problem


def _step(checkpoint: str | None) -> int:
    return int(CheckpointReader(checkpoint)["global_step"]) if checkpoint else 0


@WALL.span(GRAPH)
def _fit(estimator: api.Estimator, input_fn: InputFn, hooks: list[Hook], steps: int, watch: Watch | None) -> None:
    if watch is None:
        estimator.train(input_fn, hooks=hooks, max_steps=steps)
        return
    watch.start()
    try:
        api.train_together(estimator, input_fn, hooks, max_steps=steps)
    except (tf.errors.OpError, LostPeerError):
        watch.settle()  # ends the process if a peer is to blame
        raise
    finally:
        watch.stop()
