"""Finds checkpoints of any layout by name: a prefix or one of its files, a run, a Hugging Face folder or file."""

from __future__ import annotations

import os
from pathlib import Path

from bert_tf import files, run_layout
from bert_tf.checkpoints.huggingface import WEIGHTS_NAME
from bert_tf.checkpoints.reader import CHECKPOINT_NAME, PART, is_folder
from bert_tf.checkpoints.tensors import SHARDS, SafeTensors, TensorFlowTensors, Tensors
from bert_tf.errors import CheckpointError
from bert_tf.estimator import kept

_SAVED_MODEL = "variables/variables"  # the checkpoint in a SavedModel
_OF_PYTORCH = (".bin", ".pt", ".pth")
_NOT_PICKLED = "weights as PyTorch pickles them are not read, since loading them runs code; save them as safetensors"


def opened(name: str | os.PathLike[str]) -> Tensors:
    """Opens a checkpoint by name; a run stands for its best checkpoint, else its newest."""
    path = Path(name)
    if is_folder(path):
        return _of_folder(path)
    if path.suffix == Path(WEIGHTS_NAME).suffix:
        return SafeTensors(path)
    if path.suffix in _OF_PYTORCH and path.is_file():
        raise CheckpointError(f"{path}: {_NOT_PICKLED}")
    return TensorFlowTensors(prefix_of(path))


def prefix_of(path: Path) -> str:
    """Checkpoint prefix from the prefix itself or one of its files."""
    return os.fspath(path.with_name(PART.sub("", path.name)))


def _of_folder(folder: Path) -> Tensors:
    if any((folder / name).is_file() for name in (WEIGHTS_NAME, SHARDS)):
        return SafeTensors(folder)
    return TensorFlowTensors(prefix_in(folder))


def prefix_in(folder: Path) -> str:
    """TensorFlow checkpoint that a folder stands for; CheckpointError if none."""
    for name in (CHECKPOINT_NAME, _SAVED_MODEL):
        if (folder / f"{name}.index").is_file():
            return str(folder / name)
    found = kept.best_or_newest(folder)
    if found is None:
        why = files.missing_folder(folder)
        pickled = any(path.suffix in _OF_PYTORCH for path in folder.iterdir()) if why is None else False
        raise CheckpointError(f"{folder}: {why or (_NOT_PICKLED if pickled else 'no checkpoint in the folder')}")
    return found


def record_folder(prefix: str) -> Path:
    folder = Path(prefix).parent
    return folder.parent if folder.name in run_layout.MODELS else folder
