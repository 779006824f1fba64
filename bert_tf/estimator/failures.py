"""Turns TensorFlow failures into one-line errors for users."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints import saved
from bert_tf.errors import (
    START_AGAIN,
    CheckpointError,
    DataError,
    DeviceError,
    LostPeerError,
    OutputError,
    TrainingError,
    VocabularyError,
)
from bert_tf.estimator import run_folder
from bert_tf.estimator.progress_hook import ProgressHook
from bert_tf.estimator.update import NOT_FINITE
from bert_tf.io import files, lock
from bert_tf.runtime import noise

_PEER_GONE = "remote process exited or there was a network error"  # NCCL's wording, with several machines only
_UNPLACEABLE = ("Cannot assign a device", "Cannot colocate nodes")  # prefixes of TensorFlow's messages
# An unreadable row: TensorFlow quotes Python's error.
_OF_READER = re.compile(rf"^(?:{DataError.__name__}|{VocabularyError.__name__}): (.+)$", re.MULTILINE)
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)


@contextlib.contextmanager
def readable_errors(folder: str, progress: ProgressHook | None = None, *, cleans: bool = False) -> Iterator[None]:
    """Turns TensorFlow errors into errors that users can fix, naming `folder` (or a checkpoint).

    With `cleans`, deletes the remains of an interrupted save.
    """
    try:
        with noise.quiet_event_writer():
            yield
    # The event file writer raises IndexError; a saver without a folder raises ValueError.
    except (tf.errors.OpError, IndexError, OSError, OutputError, ValueError) as error:
        if cleans:
            run_folder.refuse_lost(folder)
        if cleans and not Path(folder).is_dir():
            raise OutputError(f"{folder}: was deleted during the run; the same command starts over") from error
        raise _readable(error, folder, progress) from error
    finally:
        if cleans and not lock.is_lost(folder):  # only the machine that saves: others might delete files being written
            for directory in (Path(folder), *(Path(folder) / name for name in (run_layout.OPTIMIZER, run_layout.EMA))):
                run_folder.delete_unfinished(directory)


def _readable(error: Exception, folder: str, progress: ProgressHook | None) -> Exception:
    if isinstance(error, (OutputError, ValueError)):
        return error
    if isinstance(error, OSError):
        place = error.filename or folder
        if error.errno in files.OF_STORAGE:
            return OutputError(f"{place}: cannot read or write: {files.reason(error)}{_kept(folder, progress)}")
        if error.errno not in _UNWRITABLE:
            return error
        return OutputError(f"{place}: cannot write: {files.reason(error)}; {saved.kept_note(folder)}")
    from bert_tf.runtime import gpu_failures

    text = str(getattr(error, "message", error))
    of_reader = _OF_READER.search(text)
    if of_reader:
        return TrainingError(f"{of_reader[1]}; the last checkpoint is kept")
    if NOT_FINITE in text and progress is not None:
        return TrainingError(
            f"step {progress.step + 1}: {NOT_FINITE}; weights are unchanged, the last checkpoint is kept;"
            " lower --learning_rate or check the data"
        )
    refused = files.reason_in(text)
    if refused:
        return OutputError(f"{folder}: cannot read or write: {refused}{_kept(folder, progress)}")
    unwritable = [line for line in text.splitlines() if any(os.strerror(n).lower() in line.lower() for n in _UNWRITABLE)]
    if unwritable:
        return OutputError(f"{folder}: cannot write: {unwritable[0].strip()[:200]}; {saved.kept_note(folder)}")
    if isinstance(error, tf.errors.ResourceExhaustedError):
        batch_size = "--train_batch_size" if progress else "--eval_batch_size, --predict_batch_size"
        users = gpu_failures.others()
        return TrainingError(f"out of memory; lower {batch_size} or --max_seq_length{f' ({users})' if users else ''}")
    refusals = [line for line in text.splitlines() if any(refusal in line for refusal in _UNPLACEABLE)]
    if refusals:
        return DeviceError(f"{refusals[0][:300]}; leave out --nosoft_placement, or name another device")
    if isinstance(error, (tf.errors.CancelledError, tf.errors.UnavailableError, tf.errors.AbortedError)) or _PEER_GONE in text:
        return LostPeerError(f"the machines have lost each other ({text.splitlines()[0][:100]}); {START_AGAIN}")
    of_gpu = gpu_failures.explain(text)
    if of_gpu:
        return DeviceError(of_gpu)
    if isinstance(error, (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError)):
        return CheckpointError(f"{folder}: damaged checkpoint: {text.splitlines()[0][:200]}")
    return error


def _kept(folder: str, progress: ProgressHook | None) -> str:
    return f"; {saved.kept_note(folder)}" if progress else ""
