"""Names that tell several models apart: in requests, files of predictions and exported folders."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from bert_tf.checkpoints import prefixes
from bert_tf.errors import FlagError
from bert_tf.run_layout import BEST


def name_of(model: str) -> str:
    """Name of the folder of a run or checkpoint; the best checkpoint is in a subfolder of it."""
    hub_name = prefixes.as_hub_name(model)
    if hub_name is not None:
        return hub_name.name.rpartition("/")[2]
    return _folder(model).name


def _folder(model: str) -> Path:
    """Of a run or checkpoint; that of the best checkpoint is in it."""
    path = Path(os.path.abspath(model))
    folder = path.parent if path.is_file() or Path(f"{path}.index").is_file() else path
    return folder.parent if folder.name == BEST else folder


def names_of(models: Sequence[str], why: str) -> tuple[str, ...]:
    """Names of several models; FlagError if two are equal, with `why` they must differ."""
    names = tuple(map(name_of, models))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        first, second, *_ = (model for model, name in zip(models, names) if name == twice)
        raise FlagError(f"two models are named {twice}, {why}; {_remedy(first, second)}")
    return names


def _remedy(first: str, second: str) -> str:
    """What gives one of two models another name."""
    one, other = prefixes.as_hub_name(first), prefixes.as_hub_name(second)
    if (one or os.path.abspath(first)) == (other or os.path.abspath(second)):
        return "they are the same: leave one out"
    if one and other:
        revision = f" --revision={other.revision}" if other.revision else ""
        return f"fetch one into a folder (hf download {other.name}{revision} --local-dir=NAME) and give that instead"
    folder = _folder(first if other else second)
    if one or other or folder != _folder(first):
        return f"give a link to the folder {folder} with another name (ln -s)"
    link = folder.with_name("NAME")
    checkpoint = link / os.path.relpath(second, folder)
    made = f"ln -s {shlex.quote(folder.name)} {shlex.quote(str(link))}"
    return f"both are in {folder}: link to it ({made}) and give {checkpoint} for {second}"
