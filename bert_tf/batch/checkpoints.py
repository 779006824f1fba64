"""Checkpoints named by a job: files, folders, patterns, all steps of a run."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bert_tf.checkpoints import model_formats
from bert_tf.checkpoints.prefixes import ALL, CHECKPOINT_NAME, PART, is_folder, is_pattern, on_hub
from bert_tf.io.log_form import log

_STEP = re.compile(r"-(\d+)$")


class Named(NamedTuple):
    """One checkpoint, or a name that matches none."""

    prefix: str  # the name that TensorFlow knows it by
    problem: str | None = None

    @property
    def step(self) -> int | None:
        """From the name, as in model.ckpt-343."""
        match = _STEP.search(self.prefix)
        return int(match[1]) if match else None


def named(names: Iterable[str]) -> list[Named]:
    """Resolves names to checkpoints, each once, in order of names, then of steps.

    A name is a prefix or one of its files; a folder, for the best checkpoint of its run (`best_or_newest`); `FOLDER:all`; or a
    pattern of checkpoints or folders.
    """
    return list(dict.fromkeys(checkpoint for name in names for checkpoint in _of(name)))


def _of(name: str) -> list[Named]:
    prefixes: list[str | None]
    pattern = name.removesuffix(ALL)
    several = is_pattern(pattern)
    folders = [path for path in (glob.glob(pattern) if several else [pattern]) if is_folder(path)]
    if name.endswith(ALL):
        prefixes = [prefix for folder in folders for prefix in _kept(folder)]
    elif several:
        prefixes = [*_in(PART.sub("", pattern)), *filter(None, map(_of_run, folders))]
    else:
        prefixes = [_of_run(folder) for folder in folders] or [PART.sub("", name)]
    in_order = sorted(map(os.path.normpath, filter(None, prefixes)), key=_by_step)  # b and ./b are one checkpoint
    return [Named(prefix) for prefix in in_order] or [Named(name, f"{name}: {_why_none(name, folders, several)}")]


def _kept(folder: str) -> list[str]:
    from bert_tf.checkpoints import saved  # imports TensorFlow

    prefixes = list(_in(glob.escape(folder) + "/*"))
    others = [Path(prefix).name for prefix in prefixes if not saved.is_listed(prefix)]
    if others:
        log.warning("%s: not in the list of checkpoints, so left out: %s", folder, ", ".join(sorted(others)))
    return [prefix for prefix in prefixes if Path(prefix).name not in others]


def _in(pattern: str) -> Iterator[str]:
    return (path.removesuffix(".index") for path in glob.glob(pattern + ".index"))


def _of_run(folder: str) -> str | None:
    file = model_formats.file_of(folder)
    if file is not None:
        return str(file)
    from bert_tf.checkpoints import saved  # imports TensorFlow

    published = Path(folder, CHECKPOINT_NAME)
    return str(published) if published.with_name(f"{CHECKPOINT_NAME}.index").is_file() else saved.best_or_newest(folder)


def _by_step(prefix: str) -> tuple[str, int, str]:
    step = Named(prefix).step
    return str(Path(prefix).parent), -1 if step is None else step, prefix


def _why_none(name: str, folders: list[str], several: bool) -> str:
    if folders:
        from bert_tf.checkpoints import weight_files

        return weight_files.unread(Path(folders[0])) or "no checkpoint in the folder"
    return "no checkpoint matches" if several else f"no checkpoint or folder of this name{on_hub(name)}"
