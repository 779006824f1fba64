"""Checkpoints of a run: the newest complete one, and those in folders of their own (DIR/best, DIR/ema, DIR/average).

TensorFlow goes by its list, the file `checkpoint`. If that is missing, unreadable or names an incomplete
checkpoint, the checkpoints themselves decide.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints import optimizer_state
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, UnreadableError
from bert_tf.io import atomic, files
from bert_tf.io.log_form import log
from bert_tf.run_layout import BEST, CHECKPOINTS, EMA, LIST

if TYPE_CHECKING:
    from tensorflow.python.training.checkpoint_state_pb2 import CheckpointState

_ASIDE = "-set-aside"  # suffix of a checkpoint that is neither listed nor deleted
_PART = re.compile(r"(model\.ckpt-(\d+))\.(index|meta|data-\d{5}-of-\d{5})")


def problem_of(prefix: str) -> str | None:
    """Returns why a checkpoint is incomplete, by its index and file sizes; UnreadableError if access is denied."""
    try:
        reader = CheckpointReader(prefix)
    except UnreadableError:
        raise
    except CheckpointError as error:
        return str(error)
    size = sum(part.stat().st_size for part in Path(prefix).parent.glob(f"{Path(prefix).name}.data-*"))
    if size < reader.data_bytes:
        return f"{prefix}: cut off: {size} bytes of at least {reader.data_bytes}"
    return None


class Found(NamedTuple):
    """A checkpoint of a folder."""

    prefix: str | None  # None if there is none
    problem: str | None = None  # why no checkpoint is complete


def newest(folder: str | os.PathLike[str], check: Callable[[str], str | None] = problem_of) -> Found:
    """Returns the checkpoint that the folder's list names, else, with a warning, the newest complete one."""
    in_list, by_step = _named(folder), _by_step(folder)
    problem: str | None = f"{Path(folder, LIST)}: {'unreadable' if Path(folder, LIST).exists() else 'missing'}"
    if in_list is not None:
        problem = check(in_list)
        if problem is None:
            return Found(in_list)
    others = (prefix for prefix in by_step if prefix != in_list)
    complete = next((prefix for prefix in others if check(prefix) is None), None)
    if complete is not None:
        _warn_once(f"{problem}; continuing from {Path(complete).name}, the newest complete checkpoint in {folder}")
        return Found(complete)
    last = in_list if in_list in by_step else next(iter(by_step), None)
    return Found(last, problem if in_list is not None or last else None)


def go_on_from(prefix: str) -> None:
    """Makes the folder's list name this checkpoint and deletes unlisted ones, which a kill has left.

    If the list named another one, newer complete checkpoints are renamed, not deleted: their weights are usable even if
    training cannot continue from them.
    """
    folder = Path(prefix).parent
    remaining = listed(folder)
    if _named(folder) != prefix or not remaining:
        step = step_of(prefix)
        complete = [other for other in reversed(_by_step(folder)) if problem_of(other) is None]
        remaining = [other for other in complete if step_of(other) <= step]
        for newer in complete[len(remaining) :]:
            _set_aside(newer)
        write_list(folder, Path(prefix).name, [Path(other).name for other in remaining])
    names = {Path(other).name for other in (*remaining, prefix)}
    with atomic.readable_errors(folder):
        for path in folder.iterdir():
            part = _PART.fullmatch(path.name)
            if part and part[1] not in names and path.is_file():
                if part[3] == "index":
                    log.warning("%s: deleted, it is not in the list of checkpoints to keep", path.with_suffix(""))
                path.unlink()


def _set_aside(prefix: str) -> None:
    """Renames a checkpoint, its index last, so that a kill leaves a recognizably incomplete one."""
    checkpoint = Path(prefix)
    with atomic.readable_errors(checkpoint.parent):
        for path in sorted(checkpoint.parent.glob(f"{checkpoint.name}.*")):  # data before index
            path.rename(path.with_name(path.name.replace(checkpoint.name, f"{checkpoint.name}{_ASIDE}", 1)))
    log.warning("%s: training continues from an older checkpoint; kept as %s%s", prefix, checkpoint.name, _ASIDE)


def delete_set_aside(prefix: str) -> None:
    """Deletes checkpoints set aside up to this one, once training has reached it again."""
    aside = Path(prefix).parent.glob(f"model.ckpt-*{_ASIDE}.*")
    passed = [path for path in aside if step_of(path.name.partition(_ASIDE)[0]) <= step_of(prefix)]
    if passed:
        optimizer_state.to_disk(prefix)
    for path in sorted(passed, key=lambda path: path.suffix != ".index"):  # data without an index are no checkpoint
        path.unlink(missing_ok=True)


def is_listed(prefix: str) -> bool:
    """Whether training keeps this checkpoint; True for any if the folder has no usable list."""
    path = Path(prefix)
    if path.name.endswith(_ASIDE):
        return False
    names = {Path(other).name for other in listed(path.parent)}
    return not names or path.name in names or not _PART.fullmatch(f"{path.name}.index")


def write_list(folder: Path, newest: str, names: Sequence[str]) -> None:
    """Writes TensorFlow's list, `names` with the next to be deleted first."""
    lines = [f'model_checkpoint_path: "{newest}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    atomic.write_text(folder / LIST, "\n".join(lines) + "\n")


def is_first(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder has one checkpoint and no list, which is written after it."""
    return len(_by_step(folder)) == 1 and not Path(folder, LIST).exists()


def kept_note(folder: str | os.PathLike[str]) -> str:
    """What a message says about checkpoints after a failed save."""
    try:
        latest = newest(folder)
    except CheckpointError:
        return "the last complete checkpoint is kept"
    return (
        "no checkpoint is complete yet" if latest.prefix is None or latest.problem else "the last complete checkpoint is kept"
    )


def checkpoint(output_dir: str | os.PathLike[str], kind: str) -> str | None:
    """Returns the checkpoint in a folder of a run, BEST or a kind of `run_layout.AVERAGES`; None if the run has none."""
    return newest(Path(output_dir) / kind).prefix


def best_or_newest(output_dir: str | os.PathLike[str]) -> str | None:
    """Returns the best checkpoint of a run, else the newest, else None; raises UnreadableError if access is denied."""
    for path in (Path(output_dir), Path(output_dir) / BEST):  # TensorFlow treats unreadable files as missing
        why = files.missing_folder(path) or files.missing(path / LIST)
        if why not in (None, files.NO_FOLDER, files.NO_FILE):
            raise UnreadableError(f"{path}: cannot read the checkpoints: {why}")
    return checkpoint(output_dir, BEST) or newest(output_dir).prefix


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
            with atomic.replacing(folder / beside, follows=False) as temporary:
                shutil.copyfile(output_dir / beside, temporary)  # bytes: the record has the digest of a tokenizer's
    write_list(folder, name, [name])
    with atomic.readable_errors(folder):
        for earlier in folder.glob(CHECKPOINTS):
            if not earlier.name.startswith(f"{name}."):
                shutil.rmtree(earlier) if earlier.is_dir() else earlier.unlink()  # a folder is an interrupted save


def _named(folder: str | os.PathLike[str]) -> str | None:
    state = _state(folder)
    return state.model_checkpoint_path if state else None


def listed(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the listed checkpoints, the next to be deleted first."""
    state = _state(folder)
    return list(state.all_model_checkpoint_paths) if state else []


def _state(folder: str | os.PathLike[str]) -> CheckpointState | None:
    if files.missing(Path(folder) / LIST):
        return None
    try:
        return tf.train.get_checkpoint_state(os.fspath(folder))
    except (UnicodeDecodeError, ValueError):
        return None


def _by_step(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the prefixes that have an index, the newest first."""
    names = [path.stem for path in Path(folder).glob(f"{CHECKPOINTS}.index") if _PART.fullmatch(path.name)]
    return sorted((os.path.join(folder, name) for name in names), key=step_of, reverse=True)


def step_of(prefix: str) -> int:
    """The step in a checkpoint's name, -1 if it has none."""
    match = re.search(r"-(\d+)$", prefix)
    return int(match[1]) if match else -1


@functools.cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)
