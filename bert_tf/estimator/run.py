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
from bert_tf.errors import CheckpointError, OutputError, TrainingError
from bert_tf.estimator.hooks import CheckpointHook, CollectHook, ProgressHook, StopOnSignalHook
from bert_tf.estimator.model_fn import LABELS, PROBABILITIES, Model, make_model_fn
from bert_tf.estimator.update import NOT_FINITE
from bert_tf.features.spec import SentenceFeatures
from bert_tf.inputs.pipeline import TO_LONGEST, Batching, Schedule, eval_input_fn, eval_order, train_input_fn
from bert_tf.runtime.devices import session_config

tf1 = tf.compat.v1

Estimator = tf.estimator.Estimator

_CHECKPOINTS_KEPT = 5
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS)


@dataclasses.dataclass(frozen=True)
class Training:
    """How to train, beside what the model knows."""

    schedule: Schedule
    save_checkpoints_steps: int = 1000
    log_every_n_steps: int = 50
    keep_optimizer_slots: bool = False
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


def make_estimator(model: Model, output_dir: str | os.PathLike[str], *, xla: bool = False) -> Estimator:
    """Returns an Estimator whose checkpoints and event files are in `output_dir`; `xla` compiles its graphs."""
    config = tf.estimator.RunConfig(
        model_dir=os.fspath(output_dir),
        tf_random_seed=model.seed,
        session_config=session_config(xla=xla),
        keep_checkpoint_max=_CHECKPOINTS_KEPT,
        log_step_count_steps=None,
        save_summary_steps=None,  # `ProgressHook` writes them; another set of fetches would have the graph optimized again
    )
    return Estimator(make_model_fn(model), config=config)


def train(
    estimator: Estimator,
    features: SentenceFeatures,
    training: Training,
    *,
    seed: int,
    hooks: Sequence[tf1.train.SessionRunHook] = (),
) -> Outcome:
    """Trains to the last step, from the newest checkpoint in the folder where there is one.

    Args:
      estimator: whose folder holds the checkpoints.
      features: with labels.
      training: how long, and what to keep.
      seed: of the order.
      hooks: called between steps, beside the package's own.

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
    stop = StopOnSignalHook()
    progress = ProgressHook(
        folder, batch_size=schedule.batch_size, total_steps=schedule.steps, every_n_steps=training.log_every_n_steps
    )
    saver = CheckpointHook(
        folder,
        every_n_steps=training.save_checkpoints_steps,
        total_steps=schedule.steps,
        keep_slots=training.keep_optimizer_slots,
    )
    input_fn = train_input_fn(features, schedule, seed=seed, start_step=start, batching=training.batching)
    try:
        with _readable_errors(folder, progress), contextlib.closing(progress):
            estimator.train(input_fn, hooks=[saver, progress, stop, *hooks], max_steps=schedule.steps)
    finally:
        stop.release()
    return Outcome(_last_step(folder), stop.stopped_by)


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
    checkpoint = require_checkpoint(estimator.model_dir)
    collected = CollectHook(probabilities=PROBABILITIES, labels=LABELS)
    with _readable_errors(estimator.model_dir):
        input_fn = eval_input_fn(features, batch_size, batching=batching)
        streamed = estimator.evaluate(input_fn, hooks=[collected], checkpoint_path=checkpoint)
    rows = collected.rows
    scores = task_metrics.compute(metrics, rows["labels"], rows["probabilities"].argmax(axis=-1))
    results = {
        **{f"eval_{name}": score for name, score in scores.items()},
        "eval_loss": float(streamed["eval_loss"]),
        "global_step": int(streamed["global_step"]),
        # The Estimator's own `loss` is a mean over batches, which counts a small last batch too much.
        "loss": float(streamed["eval_loss"]),
    }
    return Evaluation(results, _in_given_order(rows["probabilities"], features))


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
    checkpoint = require_checkpoint(estimator.model_dir)
    with _readable_errors(estimator.model_dir):
        input_fn = eval_input_fn(features, batch_size, batching=batching)
        batches = estimator.predict(input_fn, checkpoint_path=checkpoint, yield_single_examples=False)
        return _in_given_order(np.concatenate([batch["probabilities"] for batch in batches]), features)


def _in_given_order(rows: np.ndarray, features: SentenceFeatures) -> np.ndarray:
    """Undoes `eval_order`."""
    ordered = np.empty_like(rows)
    ordered[eval_order(features.lengths)] = rows
    return ordered


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


@contextlib.contextmanager
def _readable_errors(folder: str, progress: ProgressHook | None = None) -> Iterator[None]:
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
        if progress is not None:
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
    if isinstance(error, (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError)):
        return CheckpointError(f"{folder}: damaged checkpoint: {text.splitlines()[0][:200]}")
    return error
