"""Folders of a run that hold one checkpoint each, as complete trained models."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bert_tf import atomic
from bert_tf.checkpoints import optimizer_state, saved
from bert_tf.run_layout import CHECKPOINTS, CONFIG, RECORD, VOCABULARY

BESIDE = (VOCABULARY, CONFIG, RECORD)  # the checkpoint of a model


def keep_alone(checkpoint: Path, output_dir: Path) -> None:
    """Makes a complete checkpoint the only one of its folder: lists it, deletes others, copies its companion files.

    `output_dir` is the run's folder; raises OutputError if the folder cannot be written.
    """
    folder, name = checkpoint.parent, checkpoint.name
    with atomic.readable_errors(folder):
        optimizer_state.to_disk(os.fspath(checkpoint))  # before others are deleted: the power may fail
    for beside in BESIDE:
        if (output_dir / beside).is_file():
            atomic.write_text(folder / beside, (output_dir / beside).read_text(encoding="utf-8"))
    saved.write_list(folder, name, [name])
    with atomic.readable_errors(folder):
        for earlier in folder.glob(CHECKPOINTS):
            if not earlier.name.startswith(f"{name}."):
                shutil.rmtree(earlier) if earlier.is_dir() else earlier.unlink()  # a folder is a save that was cut short
