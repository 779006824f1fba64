"""Folders that the checkpoint command writes: a model with all that belongs to it, and a note of what it was made from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bert_tf import atomic, documents, lock, run_layout
from bert_tf.checkpoints import saved
from bert_tf.checkpoints.reader import CHECKPOINT_NAME, write_checkpoint
from bert_tf.checkpoints.tensors import STEP, Tensors
from bert_tf.errors import CheckpointError, FlagError, OutputError
from bert_tf.estimator import kept
from bert_tf.run_layout import CHECKPOINTS, of_step
from bert_tf.tokenization.casing import TOKENIZER_FILES

MADE_FROM = "made_from.json"

Entries = Mapping[str, npt.NDArray[Any]]


@contextlib.contextmanager
def writing(output: str | None, *, overwrite: bool) -> Iterator[Path]:
    """Yields a folder that becomes the output when the block ends, and nothing where it fails.

    Args:
      output: the setting.
      overwrite: whether one that this command has written is replaced.

    Raises:
      FlagError: none is named.
      OutputError: it is there already, or cannot be written.
    """
    if output is None:
        raise FlagError("--output is required: a folder to write")
    target = Path(output)
    refuse_taken(target, overwrite=overwrite)
    with lock.taking_turns(atomic.make_folder(target.absolute().parent)):
        refuse_taken(target, overwrite=overwrite)
        atomic.delete_unfinished(target)
        with atomic.replacing(target) as temporary:
            temporary.mkdir()
            yield temporary


def refuse_taken(target: Path, *, overwrite: bool) -> None:
    """Stops where a folder is there already that may not be replaced.

    Args:
      target: the folder.
      overwrite: whether one that this command has written may be.

    Raises:
      OutputError: it is, or its name is that of a checkpoint or of a part of a run.
    """
    run_layout.refuse_taken_name(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MADE_FROM).is_file():
        raise OutputError(f"{target}: holds something else than an output of this command; name another --output")
    if not overwrite:
        raise OutputError(f"{target}: is there already; name another --output, or add --overwrite")


def write_model(folder: Path, entries: Entries, *, beside: Path | None) -> None:
    """Writes a checkpoint of TensorFlow, and what belongs to it.

    Args:
      folder: that exists.
      entries: arrays by name; with a step it is named by it, as those of a run.
      beside: folder with configuration, vocabulary and record of the model, as far as there are; None for none.

    Raises:
      CheckpointError: the step is no number.
      OSError: it cannot be written.
    """
    step = entries.get(STEP)
    if step is not None and (step.shape or step.dtype.kind not in "iu" or step < 0):
        raise CheckpointError(f"{STEP} is {str(step.tolist())[:40]}, expected one whole number; take another checkpoint")
    name = CHECKPOINT_NAME if step is None else of_step(CHECKPOINTS, int(step))
    write_checkpoint(folder / name, entries)
    if step is not None:
        saved.write_list(folder, name, [name])
    if beside is not None:
        copy(folder, beside, (*kept.BESIDE, *TOKENIZER_FILES))


def copy(folder: Path, source: Path, names: Iterable[str]) -> None:
    """Copies those files of a folder that there are.

    Args:
      folder: to copy to.
      source: to copy from.
      names: of the files.

    Raises:
      OSError: one cannot be read or written.
    """
    for name in names:
        if (source / name).is_file():
            (folder / name).write_bytes((source / name).read_bytes())


def note(folder: Path, action: str, sources: Iterable[Tensors], **more: Any) -> None:
    """Writes what the folder was made from.

    Args:
      folder: of the output.
      action: of the command.
      sources: the checkpoints, in their order.
      **more: what else decided on it.

    Raises:
      OSError: it cannot be written.
    """
    made = [{"checkpoint": Path(source.place).name, "sha256": source.digest} for source in sources]
    text = documents.to_json({"action": action, "checkpoints": made, **more}, indent=2, sort_keys=True) + "\n"
    (folder / MADE_FROM).write_text(text, encoding="utf-8")
