"""Output folders of the checkpoint command: a model with its files and a note on its origin."""

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
from bert_tf.errors import CheckpointError, OutputError
from bert_tf.estimator import kept
from bert_tf.log_form import log
from bert_tf.operations.checkpoint.reading import PublishedModel
from bert_tf.run_layout import CHECKPOINTS, of_step
from bert_tf.tokenization.casing import TOKENIZER_FILES

MADE_FROM = "made_from.json"

Entries = Mapping[str, npt.NDArray[Any]]


@contextlib.contextmanager
def folder(output: str, *, overwrite: bool) -> Iterator[Path]:
    """Yields a folder that becomes the output on success; `overwrite` only replaces this command's own output."""
    target = Path(output)
    refuse_taken(target, overwrite=overwrite)
    with lock.taking_turns(atomic.make_folder(target.absolute().parent)):
        refuse_taken(target, overwrite=overwrite)
        atomic.delete_unfinished(target)
        with atomic.replacing(target) as temporary:
            temporary.mkdir()
            yield temporary


def refuse_taken(target: Path, *, overwrite: bool) -> None:
    """Raises OutputError if the folder exists and may not be replaced, or belongs to a checkpoint or run."""
    run_layout.refuse_taken_name(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MADE_FROM).is_file():
        raise OutputError(f"{target}: holds something else than an output of this command; name another --output")
    if not overwrite:
        raise OutputError(f"{target}: is there already; name another --output, or add --overwrite")


def write_model(folder: Path, entries: Entries, *, beside: Path | None) -> None:
    """Writes a TensorFlow checkpoint and copies configuration, vocabulary and record from `beside`, if present."""
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
    for name in names:
        if (source / name).is_file():
            (folder / name).write_bytes((source / name).read_bytes())


def note(folder: Path, action: str, sources: Iterable[Tensors], **more: Any) -> None:
    made = [{"checkpoint": Path(source.place).name, "sha256": source.digest} for source in sources]
    text = documents.to_json({"action": action, "checkpoints": made, **more}, indent=2, sort_keys=True) + "\n"
    (folder / MADE_FROM).write_text(text, encoding="utf-8")


def copy_texts(folder: Path, model: PublishedModel) -> None:
    if model.vocabulary_file is None:
        log.warning("%s: no vocabulary beside the weights, so none beside those that are written", model.found.folder)
    else:
        (folder / run_layout.VOCABULARY).write_bytes(model.vocabulary_file.read_bytes())
    copy(folder, model.found.folder, TOKENIZER_FILES)
