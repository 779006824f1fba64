"""Checkpoints that a run keeps in folders of their own, each as a complete trained model: DIR/best, DIR/ema, DIR/average."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bert_tf import run_layout
from bert_tf.checkpoints import optimizer_state, saved
from bert_tf.errors import UnreadableError
from bert_tf.io import atomic, files
from bert_tf.run_layout import BEST, CHECKPOINTS, EMA, LIST


def checkpoint(output_dir: str | os.PathLike[str], kind: str) -> str | None:
    """Returns the checkpoint in a folder of a run, BEST or a kind of `run_layout.AVERAGES`; None if the run has none."""
    return saved.newest(Path(output_dir) / kind).prefix


def best_or_newest(output_dir: str | os.PathLike[str]) -> str | None:
    """Returns the best checkpoint of a run, else the newest, else None; raises UnreadableError if access is denied."""
    for path in (Path(output_dir), Path(output_dir) / BEST):  # TensorFlow treats unreadable files as missing
        why = files.missing_folder(path) or files.missing(path / LIST)
        if why not in (None, files.NO_FOLDER, files.NO_FILE):
            raise UnreadableError(f"{path}: cannot read the checkpoints: {why}")
    return checkpoint(output_dir, BEST) or saved.newest(output_dir).prefix


def moving_average(prefix: str) -> str:
    """Returns the name of a checkpoint's moving average, whether it exists or not."""
    path = Path(prefix)
    return str(path.parent / EMA / path.name)


def publish_average(prefix: str) -> None:
    """Makes a complete checkpoint's moving average, if any, the run's; raises OutputError."""
    average = Path(moving_average(prefix))
    if Path(f"{average}.index").is_file():
        keep_only(average, average.parent.parent)


def average_files(prefix: str) -> list[Path]:
    """Returns the files of a checkpoint's moving average."""
    average = Path(moving_average(prefix))
    return list(average.parent.glob(f"{average.name}.*"))


def keep_only(prefix: Path, output_dir: Path) -> None:
    """Makes a complete checkpoint the only one of its folder: lists it, deletes others, copies its companion files.

    `output_dir` is the run's folder; raises OutputError if the folder cannot be written.
    """
    folder, name = prefix.parent, prefix.name
    with atomic.readable_errors(folder):
        optimizer_state.to_disk(os.fspath(prefix))  # before others are deleted, in case of power loss
    for beside in run_layout.beside():
        if (output_dir / beside).is_file():
            atomic.write_text(folder / beside, (output_dir / beside).read_text(encoding="utf-8"))
    saved.write_list(folder, name, [name])
    with atomic.readable_errors(folder):
        for earlier in folder.glob(CHECKPOINTS):
            if not earlier.name.startswith(f"{name}."):
                shutil.rmtree(earlier) if earlier.is_dir() else earlier.unlink()  # a folder is an interrupted save
