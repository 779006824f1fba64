"""Averaged weights of a run, each in its own folder as a complete trained model: DIR/ema, DIR/average."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from bert_tf import atomic
from bert_tf.checkpoints import mean, saved
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.estimator import kept
from bert_tf.run_layout import AVERAGE, CHECKPOINTS, EMA, of_step


def of_run(output_dir: str | os.PathLike[str], kind: str) -> str | None:
    """Returns the checkpoint of an average, a kind of `run_layout.AVERAGES`; None if the run has none."""
    return saved.newest(Path(output_dir) / kind).prefix


def moving(checkpoint: str) -> str:
    """Returns the name of a checkpoint's moving average, whether it exists or not."""
    path = Path(checkpoint)
    return str(path.parent / EMA / path.name)


def settle(checkpoint: str) -> None:
    """Makes a complete checkpoint's moving average that of the run, if it has one; raises OutputError."""
    average = Path(moving(checkpoint))
    if Path(f"{average}.index").is_file():
        kept.keep_alone(average, average.parent.parent)


def delete(checkpoint: str) -> None:
    """Deletes the moving average of a checkpoint that failed to save, since it may fill the disk."""
    for path in _files(checkpoint):
        with contextlib.suppress(OSError):
            path.unlink()


def size(checkpoint: str) -> int:
    return sum(path.stat().st_size for path in _files(checkpoint))


def _files(checkpoint: str) -> list[Path]:
    average = Path(moving(checkpoint))
    return list(average.parent.glob(f"{average.name}.*"))


def keep_mean(output_dir: str | os.PathLike[str], checkpoints: Sequence[str], step: int) -> str:
    """Saves the mean of checkpoints as the run's average at `step`, the last one's; returns its name.

    Raises CheckpointError if a checkpoint is damaged or not finite, OutputError if the folder cannot be written.
    """
    folder = atomic.make_folder(Path(output_dir) / AVERAGE)
    name = folder / of_step(CHECKPOINTS, step)
    entries = mean.of(checkpoints)
    with atomic.readable_errors(folder):
        write_checkpoint(name, entries)
    kept.keep_alone(name, Path(output_dir))
    return os.fspath(name)
