"""Training, evaluation and prediction with one Estimator, and TensorFlow's failures as one line each."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import logging

from bert_tf import metrics as task_metrics
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, DeviceError, LostPeerError, OutputError, TrainingError
from bert_tf.estimator.hooks import CheckpointHook, CollectHook, ProgressHook, StopOnSignalHook, WatchHook, write_scalars
from bert_tf.estimator.model_fn import LABELS, LOSSES, PROBABILITIES, ROWS, Features, Model, ModelFn, make_model_fn
from bert_tf.estimator.replica_check import ReplicaCheckHook
from bert_tf.estimator.update import NOT_FINITE
from bert_tf.features.spec import SentenceFeatures
from bert_tf.inputs.pipeline import TO_LONGEST, Batching, InputFn, Schedule, eval_input_fn, train_input_fn
from bert_tf.runtime.machine import DeviceFunction, Machine
from bert_tf.runtime.peers import START_AGAIN, Watch

tf1 = tf.compat.v1

Estimator = tf.estimator.Estimator

_CHECKPOINTS_KEPT = 5
_PREDICTION = "prediction"
_UNPLACEABLE = ("Cannot assign a device", "Cannot colocate nodes")  # how TensorFlow's messages begin
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS)


@dataclasses.dataclass(frozen=True)
class Training:
    """How to train, beside what the model knows."""

    schedule: Schedule
    save_checkpoints_steps: int = 1000
    log_every_n_steps: int = 50
    keep_optimizer_slots: bool = False
    check_replicas_every_n_steps: int = 0
    batching: Batching = TO_LONGEST


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How training ended."""

    step: int
    stopped_by: signal.Signals | None = None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a checkpoint reaches on a split.

    Attributes:
      results: eval_<metric>, eval_loss, loss (both the mean over examples, in nats) and global_step.
      probabilities: [N, L].
    """

    results: dict[str, float]
    probabilities: np.ndarray


def make_estimator(model: Model, output_dir: str | os.PathLike[str], machine: Machine) -> Estimator:
    """Returns an Estimator of a machine whose checkpoints and event files are in `output_dir`."""
    config = tf.estimator.RunConfig(
        model_dir=os.fspath(output_dir),
        tf_random_seed=model.seed,
        session_config=machine.session_config,
        train_distribute=machine.strategy,
        eval_distribute=machine.strategy,
        device_fn=machine.plan.device_function,
        keep_checkpoint_max=_CHECKPOINTS_KEPT,
        log_step_count_steps=None,
        save_summary_steps=None,  # `ProgressHook` writes them; another set of fetches would have the graph optimized again
    )
    return Estimator(_placed(make_model_fn(model), machine.plan.device_function), config=config)


def _placed(model_fn: ModelFn, device_function: DeviceFunction | None) -> ModelFn:
    """Puts evaluation and prediction on devices too; of a `RunConfig` only training takes the function."""
    if device_function is None:
        return model_fn

    def placed(features: Features, mode: str) -> tf.estimator.EstimatorSpec:
        with tf1.device(device_function):
            return model_fn(features, mode)

    return placed


def train(
    estimator: Estimator,
    features: SentenceFeatures,
    training: Training,
    *,
    seed: int,
    hooks: Sequence[tf1.train.SessionRunHook] = (),
    machine: Machine | None = None,
) -> Outcome:
    """Trains to the last step, from the newest checkpoint in the folder where there is one.

    Args:
      estimator: whose folder holds the checkpoints.
      features: with labels.
      training: how long, and what to keep.
      seed: of the order.
      hooks: called between steps, beside the package's own.
      machine: what the estimator was made for; of several that train together the chief alone writes.

    Raises:
      TrainingError: loss or gradient are no longer finite, or memory is out.
      CheckpointError: the newest checkpoint is damaged.
      OutputError: a checkpoint cannot be written.
    """
    folder, schedule = estimator.model_dir, training.schedule
    start = _last_step(folder)
    if start >= schedule.steps:
        logging.info("already trained to step %d of %d: nothing left to train", start, schedule.steps)
        return Outcome(start)
    if start:
        logging.info("continuing from step %d of %d", start, schedule.steps)
    writes, watch = machine is None or machine.is_chief, machine and machine.watch
    stop = StopOnSignalHook(together=watch is not None)
    progress = ProgressHook(
        folder if writes else None,
        batch_size=schedule.batch_size,
        total_steps=schedule.steps,
        every_n_steps=training.log_every_n_steps,
    )
    between_steps = [progress, stop, *_guards(training, watch, start), *([_saver(folder, training)] if writes else []), *hooks]
    input_fn = train_input_fn(features, schedule, seed=seed, start_step=start, batching=training.batching)
    try:
        with _readable_errors(folder, progress, cleans=writes), contextlib.closing(progress):
            _fit(estimator, input_fn, between_steps, schedule.steps, watch)
    finally:
        stop.release()
    # The chief of several machines may still be saving.
    return Outcome(_last_step(folder) if writes else progress.step, stop.stopped_by)


def _guards(training: Training, watch: Watch | None, start: int) -> list[tf1.train.SessionRunHook]:
    """Returns what looks after replicas and machines; before the saver, so that what is found wrong is not saved."""
    guards: list[tf1.train.SessionRunHook] = []
    if training.check_replicas_every_n_steps:
        guards.append(ReplicaCheckHook(training.check_replicas_every_n_steps, start))
    if watch:
        guards.append(WatchHook(watch, training.schedule.steps - start))
    return guards


def _saver(folder: str, training: Training) -> CheckpointHook:
    return CheckpointHook(
        folder,
        every_n_steps=training.save_checkpoints_steps,
        total_steps=training.schedule.steps,
        keep_slots=training.keep_optimizer_slots,
    )


def evaluate(
    estimator: Estimator,
    features: SentenceFeatures,
    *,
    metrics: tuple[str, ...],
    batch_size: int | None = None,
    batching: Batching = TO_LONGEST,
) -> Evaluation:
    """Measures the newest checkpoint; every example counts once.

    Args:
      estimator: whose folder holds the checkpoint.
      features: with labels.
      metrics: names of `bert_tf.metrics`.
      batch_size: examples at a time; None for as many as suit their lengths.
      batching: how to pad.

    Raises:
      CheckpointError: there is no checkpoint, or it is damaged.
    """
    values, step = _forward(estimator, features, batch_size, batching)
    scores = task_metrics.compute(metrics, values["labels"], values["probabilities"].argmax(axis=-1))
    loss = float(values["losses"].mean(dtype=np.float64))
    results = {**{f"eval_{name}": score for name, score in scores.items()}, "eval_loss": loss, "loss": loss}
    with _readable_errors(estimator.model_dir):
        write_scalars(estimator.eval_dir(), results, step)
    return Evaluation({**results, "global_step": step}, values["probabilities"])


def predict(
    estimator: Estimator, features: SentenceFeatures, *, batch_size: int | None = None, batching: Batching = TO_LONGEST
) -> np.ndarray:
    """Returns the [N, L] probabilities of the labels by the newest checkpoint, in the order of the examples.

    Args:
      estimator: whose folder holds the checkpoint.
      features: labels are not looked at.
      batch_size: examples at a time; None for as many as suit their lengths.
      batching: how to pad.

    Raises:
      CheckpointError: there is no checkpoint, or it is damaged.
    """
    values, _ = _forward(estimator, features, batch_size, batching, name=_PREDICTION)
    shutil.rmtree(estimator.eval_dir(_PREDICTION), ignore_errors=True)  # summaries of a loss without labels
    return values["probabilities"]


def _forward(
    estimator: Estimator, features: SentenceFeatures, batch_size: int | None, batching: Batching, *, name: str | None = None
) -> tuple[dict[str, np.ndarray], int]:
    """Computes all examples on all replicas; returns values in the order of the examples, and the checkpoint's step.

    `Estimator.predict` knows one device only, so predictions come out of an evaluation too.
    """
    checkpoint = require_checkpoint(estimator.model_dir)
    collected = CollectHook(ROWS, probabilities=PROBABILITIES, labels=LABELS, losses=LOSSES)
    with _readable_errors(estimator.model_dir):
        input_fn = eval_input_fn(features, batch_size, batching=batching)
        done = estimator.evaluate(input_fn, hooks=[collected], checkpoint_path=checkpoint, name=name)
    return collected.values(), int(done["global_step"])


def require_checkpoint(folder: str | os.PathLike[str]) -> str:
    """Returns the newest checkpoint of a folder.

    Raises:
      CheckpointError: there is none.
    """
    checkpoint = tf.train.latest_checkpoint(os.fspath(folder))
    if checkpoint is None:
        raise CheckpointError(
            f"{folder}: no trained checkpoint; train first (--do_train), or name its folder with --output_dir"
        )
    return checkpoint


def _last_step(folder: str) -> int:
    checkpoint = tf.train.latest_checkpoint(folder)
    listed = Path(folder) / "checkpoint"
    mend = f"to go on from an earlier checkpoint, name it in the first line of {listed}; to start anew, delete {folder}"
    if checkpoint is None:
        if listed.exists():  # it is written after the checkpoint that it names
            raise CheckpointError(f"{listed}: names no checkpoint that exists; {mend}")
        return 0
    try:
        reader = CheckpointReader(checkpoint)
        for name in reader.shapes:
            reader[name]
        return int(reader["global_step"])
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {mend}") from error


def _fit(
    estimator: Estimator, input_fn: InputFn, hooks: list[tf1.train.SessionRunHook], steps: int, watch: Watch | None
) -> None:
    if watch is None:
        estimator.train(input_fn, hooks=hooks, max_steps=steps)
        return
    spec = tf.estimator.TrainSpec(input_fn, max_steps=steps, hooks=hooks)
    watch.start()
    try:
        tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(input_fn))  # workers only train
    except (tf.errors.OpError, LostPeerError):
        watch.settle()  # ends the process where a peer is to blame
        raise
    finally:
        watch.stop()


@contextlib.contextmanager
def _readable_errors(folder: str, progress: ProgressHook | None = None, *, cleans: bool = False) -> Iterator[None]:
    try:
        with _quiet_event_writer():
            yield
    except (tf.errors.OpError, IndexError) as error:  # the writer of event files raises IndexError
        raise _readable(error, folder, progress) from error
    except OSError as error:
        if error.errno in _UNWRITABLE:
            raise OutputError(f"{folder}: cannot write: {error.strerror}; the last whole checkpoint is kept") from error
        raise
    finally:
        if cleans:  # of several machines the one that saves: another might delete what is being written
            _delete_torn_saves(Path(folder))


def _delete_torn_saves(folder: Path) -> None:
    for rest in [*folder.glob("*.tempstate*"), *folder.glob("model.ckpt-*_temp")]:
        shutil.rmtree(rest, ignore_errors=True) if rest.is_dir() else rest.unlink(missing_ok=True)


@contextlib.contextmanager
def _quiet_event_writer() -> Iterator[None]:
    """Keeps the traceback of the thread that writes event files off the screen; its error comes out of `flush` as well."""
    earlier = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        if type(failure.thread).__name__ != "_EventLoggerThread":
            earlier(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = earlier


def _readable(error: tf.errors.OpError | IndexError, folder: str, progress: ProgressHook | None) -> Exception:
    text = str(getattr(error, "message", error))
    if NOT_FINITE in text and progress is not None:
        return TrainingError(
            f"step {progress.step + 1}: {NOT_FINITE}; the weights before it are not touched, the last checkpoint is kept;"
            " lower --learning_rate or look at the data"
        )
    if any(os.strerror(number) in text for number in _UNWRITABLE):
        return OutputError(f"{folder}: cannot write: {text.splitlines()[0][:200]}; the last whole checkpoint is kept")
    if isinstance(error, tf.errors.ResourceExhaustedError):
        batch_size = "--train_batch_size" if progress else "--eval_batch_size, --predict_batch_size"
        return TrainingError(f"out of memory; lower {batch_size} or --max_seq_length")
    refusals = [line for line in text.splitlines() if any(refusal in line for refusal in _UNPLACEABLE)]
    if refusals:
        return DeviceError(f"{refusals[0][:300]}; leave out --nosoft_placement, or name another device")
    if isinstance(error, (tf.errors.CancelledError, tf.errors.UnavailableError, tf.errors.AbortedError)):
        return LostPeerError(f"the machines have lost each other ({text.splitlines()[0][:100]}); {START_AGAIN}")
    if isinstance(error, (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError)):
        return CheckpointError(f"{folder}: damaged checkpoint: {text.splitlines()[0][:200]}")
    return error
