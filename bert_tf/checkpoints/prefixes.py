"""Prefixes, the names of checkpoints, and the files that are there of one; names of models on the hub. Without TensorFlow."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from bert_tf import versions
from bert_tf.checkpoints import model_formats
from bert_tf.errors import CheckpointError, FlagError, UnreadableError
from bert_tf.io import files
from bert_tf.run_layout import AVERAGE, BEST, EMA, RECORD

ALL = ":all"  # after a folder: its checkpoints of all steps
CHECKPOINT_NAME = "bert_model.ckpt"
_KEPT_BY = {BEST: "--eval_every_n_steps=100", EMA: "--ema=0.999", AVERAGE: "--average_last=3 --save_checkpoints_steps=100"}
_ON_HUB = re.compile(r"(?:[\w-]+/)?[a-zA-Z][\w-]*(?:\.\d[\w-]*)*")  # bert-base-uncased, org/name-v1.5
PART = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")  # suffixes of a checkpoint's files
HUB = "hub:"  # before a name, which may have a revision then
_PART = r"[A-Za-z0-9][\w.-]{0,95}"
_NAME = re.compile(f"{_PART}/{_PART}")
_MARKED = re.compile(rf"{HUB}(?P<name>{_PART}(?:/{_PART})?)(?:@(?P<revision>[\w./-]{{1,250}}))?")
_PATHS = re.compile(r"\.(?:ckpt|index$|meta$|safetensors$|bin$|pth?$|json$|tsv$|csv$)")  # what a path has that is no folder


def is_folder(name: str | os.PathLike[str]) -> bool:
    """Whether a name is a folder; False if a checkpoint has the same name."""
    return Path(name).is_dir() and not Path(f"{os.fspath(name)}.index").is_file()


def refuse_missing(prefix: str) -> None:
    """Raises CheckpointError if no checkpoint has this name, UnreadableError if its files cannot be read."""
    model_formats.refuse(prefix)
    if not _is_there(prefix):
        raise CheckpointError(f"{prefix}: no checkpoint of this name{_hint(prefix)}")


def plain(prefix: str) -> str:
    """Returns a path without * ? [, which TensorFlow reads as a pattern: relative to the working directory if need be.

    Raises CheckpointError if the relative path has them, too.
    """
    if not glob.has_magic(prefix):
        return prefix
    folder, name = os.path.split(prefix)
    path = os.path.join(os.path.relpath(os.path.realpath(folder)), name)
    if glob.has_magic(path):
        raise CheckpointError(
            f"{prefix}: TensorFlow treats * ? [ in a path as a pattern; rename it, or work in its folder (cd)"
        )
    return path


def refuse_missing_model(name: str) -> None:
    """Raises CheckpointError if a name matches nothing, or needs TensorFlow where there is none.

    Folders, patterns and URLs are looked into when they are read. A model of the hub is looked up
    there: FlagError if the package for it is missing.
    """
    if files.has_scheme(name):
        return
    of_hub = as_hub_name(name)
    has_another_form = (of_hub is not None or os.path.isdir(name)) and model_formats.file_of(name) is None
    if has_another_form and versions.installed_tensorflow() is None:
        raise CheckpointError(f"{name}: {versions.without_tensorflow(sys.version_info[:2])}")
    if of_hub is not None:
        from bert_tf.checkpoints import hub  # imports this module

        hub.refuse_missing(of_hub)
    elif not is_pattern(name) and not os.path.isdir(name.removesuffix(ALL)) and model_formats.file_of(name) is None:
        refuse_missing(PART.sub("", name))


def refuse_missing_models(names: str) -> None:
    """As `refuse_missing_model`, for one name or several with commas between them."""
    for name in several(names):
        refuse_missing_model(name)


def several(names: str) -> list[str]:
    """Names between commas, and of the models of a folder that has several; one name if something has it as a whole."""
    is_one = "," not in names or any(map(os.path.lexists, (names, f"{names}.index"))) or is_pattern(names)
    split = [names] if is_one else [name.strip() for name in names.split(",") if name.strip()]
    return [model for name in split for model in model_formats.models_in(name)]


def is_pattern(name: str) -> bool:
    """Whether a name has glob characters and is not itself that of a folder or checkpoint."""
    paths = (name, f"{name}.index", f"{PART.sub('', name)}.index")
    return glob.has_magic(name) and not any(map(os.path.lexists, paths))


def may_name_several(name: str) -> bool:
    """Whether a name is a pattern, or FOLDER:all."""
    return is_pattern(name) or name.endswith(ALL)


def _is_there(prefix: str) -> bool:
    """Whether readable files exist; raises CheckpointError for unreadable ones, which TensorFlow reports as damaged."""
    alone, index = Path(prefix), Path(f"{prefix}.index")
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(prefix)  # a link to itself exists, whatever is_file says
        data = alone.parent.glob(f"{glob.escape(alone.name)}.data-*")
        parts = [path for path in (alone, index) if path.is_file()] + sorted(data)
    except OSError as error:
        raise UnreadableError(f"{prefix}: cannot read the weights: {files.reason(error)}") from error
    for path in parts:
        why = files.missing(path)
        if why:
            raise UnreadableError(f"{path}: cannot read the weights: {why}")
    return alone in parts or index in parts


def _hint(prefix: str) -> str:
    path = Path(prefix)
    if path.name in _KEPT_BY and path.with_name(RECORD).is_file():
        return f": this run kept none; train with {_KEPT_BY[path.name]}"
    index_files = sorted(path.parent.glob("*.index"))
    return f"; the folder holds {', '.join(path.stem for path in index_files[:5])}" if index_files else on_hub(prefix)


def on_hub(name: str) -> str:
    """Returns what to do if a missing name looks like a model's on the Hugging Face hub."""
    return f"; if it is a model of the Hugging Face hub: {HUB}{name}" if _ON_HUB.fullmatch(name) else ""


class HubName(NamedTuple):
    name: str
    revision: str | None = None  # branch, tag or commit


def as_hub_name(name: str | os.PathLike[str]) -> HubName | None:
    """Returns ORGANISATION/NAME, unless something local has this name, or hub:NAME@REVISION; None for anything else.

    Where the part before the slash is a folder, a name without `hub:` is a path, with a spelling mistake or not yet there.
    """
    text = os.fspath(name)
    marked = _MARKED.fullmatch(text)
    if marked:
        return HubName(marked["name"], marked["revision"])
    if text.startswith(HUB):
        raise FlagError(f"{text}: expected {HUB}ORGANISATION/NAME or {HUB}ORGANISATION/NAME@REVISION")
    if not _NAME.fullmatch(text) or _PATHS.search(text) or Path(text).parent.is_dir():
        return None
    return HubName(text)


def refuse_unavailable(hub_name: HubName) -> None:
    """Raises FlagError if the package that fetches models is missing."""
    if importlib.util.find_spec("huggingface_hub") is None:
        from bert_tf import extras

        raise FlagError(
            f"{hub_name.name}: no checkpoint of this name here; to fetch it from the Hugging Face hub: {extras.install('hub')};"
            f" or {download_by_hand(hub_name.name)}"
        )


def download_by_hand(name: str) -> str:
    folder = name.rpartition("/")[2]
    return f"download it on another machine (hf download {name} --local-dir={folder}) and name the folder"
