"""Optimizer state, needed to continue a run; deleted once a newer checkpoint is complete on disk.

OUTPUT_DIR/optimizer/moments-N holds the moments at step N, rows-N the word vectors with deferred updates. Both are
in TensorFlow's format and written before model.ckpt-N: if a checkpoint lacks its moments, they were deleted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from bert_tf.checkpoints.reader import CheckpointReader, problem_of_saved
from bert_tf.io import atomic
from bert_tf.run_layout import OPTIMIZER

_NOT_OF_FOLDERS = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)  # where only files can be synced
_KINDS = ("moments", "rows")  # begin the names of files
_MOMENT = "/adam_m"  # name suffix of first moments


def moments(checkpoint: str) -> str:
    return _beside(checkpoint, _KINDS[0])


def rows(checkpoint: str) -> str:
    """Returns the prefix of the word vectors with deferred updates."""
    return _beside(checkpoint, _KINDS[1])


def _beside(checkpoint: str, kind: str) -> str:
    path = Path(checkpoint)
    return str(path.parent / OPTIMIZER / f"{kind}-{path.name.rpartition('-')[2]}")


def exists(prefix: str) -> bool:
    return Path(f"{prefix}.index").is_file()


def is_inside(checkpoint: str) -> bool:
    """Whether the checkpoint itself holds the moments, as with --keep_optimizer_slots."""
    return any(name.endswith(_MOMENT) for name in CheckpointReader(checkpoint).shapes)


def problem_of(checkpoint: str) -> str | None:
    """Reads the moments of a complete checkpoint; returns why training cannot continue from them, else None."""
    if not is_inside(checkpoint) and not exists(moments(checkpoint)):
        file_name = f"{OPTIMIZER}/{Path(moments(checkpoint)).name}"
        return f"{checkpoint}: {file_name} is missing; a newer checkpoint replaces it (--keep_optimizer_slots keeps moments)"
    problems = (problem_of_saved(prefix) for prefix in (moments(checkpoint), rows(checkpoint)) if exists(prefix))
    return next(filter(None, problems), None)


def delete(checkpoint: str) -> None:
    """Deletes the state of a checkpoint whose save has failed: it may fill the disk."""
    for path in _files((moments(checkpoint), rows(checkpoint))):
        with contextlib.suppress(OSError):
            path.unlink()


def _files(prefixes: Iterable[str]) -> list[Path]:
    return [part for prefix in prefixes for part in Path(prefix).parent.glob(f"{Path(prefix).name}.*")]


def size(checkpoint: str) -> int:
    return sum(path.stat().st_size for path in _all_files(checkpoint))


def prune(newest: str, checkpoints: Iterable[str]) -> None:
    """Deletes the state of checkpoints not in `checkpoints`; first syncs the newest one to disk, since power may fail."""
    names = {Path(name(checkpoint)).name for checkpoint in checkpoints for name in (moments, rows)}
    state_dir = Path(newest).parent / OPTIMIZER
    with atomic.readable_errors(state_dir):
        own = (path for kind in _KINDS for path in state_dir.glob(f"{kind}-*"))  # people have folders of its name, too
        paths = sorted(own, key=lambda path: path.suffix != ".index")
        others = [path for path in paths if path.name.partition(".")[0] not in names]
        if others:
            to_disk(newest)
        for path in others:  # index first: data without an index are no checkpoint
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if len(others) == len(paths):
            with contextlib.suppress(OSError):  # a network disk keeps the names of files being read
                state_dir.rmdir()


def _all_files(checkpoint: str) -> list[Path]:
    return _files((checkpoint, moments(checkpoint), rows(checkpoint)))


def to_disk(checkpoint: str) -> None:
    """Syncs a checkpoint, its state and their directory entries, so that they survive a power loss."""
    paths = _all_files(checkpoint)
    for path in [*paths, *{path.parent for path in paths}]:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            if not (path.is_dir() and error.errno in _NOT_OF_FOLDERS):
                raise
        finally:
            os.close(number)
