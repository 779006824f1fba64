"""Names of models on the Hugging Face hub, and what is needed to fetch one; `hub` fetches."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

from bert_tf import extras
from bert_tf.errors import FlagError

MARK = "hub:"  # before a name, which may have a revision then

_PART = r"[A-Za-z0-9][\w.-]{0,95}"
_NAME = re.compile(f"{_PART}/{_PART}")
_MARKED = re.compile(rf"{MARK}(?P<name>{_PART}(?:/{_PART})?)(?:@(?P<revision>[\w./-]{{1,250}}))?")
_PATHS = re.compile(r"\.(?:ckpt|index$|meta$|safetensors$|bin$|pth?$|json$|tsv$|csv$)")  # what a path has that is no folder


class HubName(NamedTuple):
    name: str
    revision: str | None = None  # branch, tag or commit


def parsed(name: str | os.PathLike[str]) -> HubName | None:
    """Returns ORGANISATION/NAME, unless something local has this name, or hub:NAME@REVISION; None for anything else.

    Where the part before the slash is a folder, a name without `hub:` is a path, with a spelling mistake or not yet there.
    """
    text = os.fspath(name)
    marked = _MARKED.fullmatch(text)
    if marked:
        return HubName(marked["name"], marked["revision"])
    if text.startswith(MARK):
        raise FlagError(f"{text}: expected {MARK}ORGANISATION/NAME or {MARK}ORGANISATION/NAME@REVISION")
    if not _NAME.fullmatch(text) or _PATHS.search(text) or Path(text).parent.is_dir():
        return None
    return HubName(text)


def refuse_unavailable(hub_name: HubName) -> None:
    """Raises FlagError if the package that fetches models is missing."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise FlagError(
            f"{hub_name.name}: no checkpoint of this name here; to fetch it from the Hugging Face hub: {extras.install('hub')};"
            f" or {by_hand(hub_name.name)}"
        )


def by_hand(name: str) -> str:
    folder = name.rpartition("/")[2]
    return f"download it on another machine (hf download {name} --local-dir={folder}) and name the folder"
