"""Names of files that do not exist are refused before TensorFlow starts."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.errors import CheckpointError, DataError, FlagError

_FILES = (
    *("train_file", "dev_file", "test_file", "predict_file", "unlabelled", "exclude_rows", "relabel"),
    *("input", "data", "gate_data", "predictions", "job", "bert_config_file", "vocab_file"),
)
_CHECKPOINTS = ("checkpoint", "init_checkpoint", "teacher", "run", "runs", "checkpoints")
_FOLDERS = ("data_dir",)
_LISTS = ("train_file", "dev_file", "test_file", "input", "checkpoint", "checkpoints")  # may name several, with commas
# What later checks explain better: pipes, other file systems, patterns, all steps of a run, names of the Hugging Face hub.
_ELSEWHERE = re.compile(r"-|:.*|.*://.*|.*[*?\[].*|.*:all|[\w.-]+(/[\w.-]+)?|/dev/.*")


def refuse(values: Mapping[str, Any]) -> None:
    """Raises BertError for the first missing one among values of flags, by name."""
    for name, found in values.items():
        several = found if isinstance(found, (list, tuple)) else str(found).split(",") if name in _LISTS else [found]
        for value in several:
            if isinstance(value, str) and not _ELSEWHERE.fullmatch(value) and _is_missing(value):
                _refuse(name, value)


def _is_missing(path: str) -> bool:
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno == errno.ENOENT  # others are told later
    except ValueError:  # a NUL character
        return False
    return False


def _refuse(name: str, value: str) -> None:
    if name in _FILES:
        raise FlagError(f"{value}: cannot read the file: {os.strerror(errno.ENOENT)} (--{name})")
    if name in _FOLDERS:
        raise DataError(f"no such folder; --{name} must hold the files of the task", value)
    beside = glob.glob(f"{glob.escape(value)}*") or any(Path(value).parent.glob("*.index"))
    if name in _CHECKPOINTS and not beside:  # else a later message says what is there
        raise CheckpointError(f"{value}: no checkpoint or folder of this name (--{name})")
