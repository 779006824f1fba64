"""The best checkpoint of a run, in its own folder as a complete trained model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bert_tf import atomic, files
from bert_tf.checkpoints import saved
from bert_tf.errors import UnreadableError
from bert_tf.estimator import kept
from bert_tf.estimator.forward import Forward
from bert_tf.run_layout import BEST, CHECKPOINTS, LIST, of_step


def checkpoint(output_dir: str | os.PathLike[str]) -> str | None:
    return saved.newest(Path(output_dir) / BEST).prefix


def of_run(output_dir: str | os.PathLike[str]) -> str | None:
    """Returns the best checkpoint of a run, else the newest, else None; raises UnreadableError if access is denied."""
    _refuse_unreadable(Path(output_dir))
    return checkpoint(output_dir) or saved.newest(output_dir).prefix


def _refuse_unreadable(folder: Path) -> None:
    """Raises UnreadableError, since TensorFlow treats unreadable files as missing."""
    for path in (folder, folder / BEST):
        why = files.missing_folder(path) or files.missing(path / LIST)
        if why not in (None, files.NO_FOLDER, files.NO_FILE):
            raise UnreadableError(f"{path}: cannot read the checkpoints: {why}")


def replace(output_dir: str | os.PathLike[str], forward: Forward, step: int) -> None:
    """Saves the loaded weights as the best and deletes the previous ones; a complete checkpoint is listed at all times.

    Raises OutputError if the folder cannot be written.
    """
    checkpoint = atomic.make_folder(Path(output_dir) / BEST) / of_step(CHECKPOINTS, step)
    forward.save(checkpoint)
    kept.keep_alone(checkpoint, Path(output_dir))


def remove(output_dir: str | os.PathLike[str]) -> None:
    shutil.rmtree(Path(output_dir) / BEST, ignore_errors=True)
