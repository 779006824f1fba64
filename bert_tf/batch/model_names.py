"""Names that tell several models apart: in requests, files of predictions and exported folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bert_tf.checkpoints import prefixes
from bert_tf.errors import FlagError
from bert_tf.run_layout import BEST


def name_of(model: str) -> str:
    """Name of the folder of a run or checkpoint, or of a model of the hub without its owner."""
    place = _place(model)
    return place.name if isinstance(place, Path) else place.name.rpartition("/")[2]


def _place(model: str) -> Path | prefixes.HubName:
    """The hub's model, or the folder of a run or checkpoint; that of the best checkpoint is in it."""
    hub_name = prefixes.as_hub_name(model)
    if hub_name is not None:
        return hub_name
    path = Path(os.path.abspath(model))
    folder = path.parent if path.is_file() or Path(f"{path}.index").is_file() else path
    return folder.parent if folder.name == BEST else folder


def names_of(models: Sequence[str], why: str) -> tuple[str, ...]:
    """Names of several models, of checkpoints of one run with their own; FlagError if two are equal, `why` they must differ."""
    places = [_place(model) for model in models]
    names = []
    for model, place in zip(models, places):
        path = Path(os.path.abspath(model))
        is_one_of_several = isinstance(place, Path) and places.count(place) > 1 and path != place
        names.append(f"{name_of(model)}-{path.name}" if is_one_of_several else name_of(model))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        first, second, *_ = (model for model, name in zip(models, names) if name == twice)
        raise FlagError(f"two models are named {twice}, {why}; {_remedy(first, second)}")
    return tuple(names)


def _remedy(first: str, second: str) -> str:
    """What gives one of two models another name."""
    one, other = prefixes.as_hub_name(first), prefixes.as_hub_name(second)
    if (one or os.path.abspath(first)) == (other or os.path.abspath(second)):
        return "they are the same: leave one out"
    if one and other:
        revision = f" --revision={other.revision}" if other.revision else ""
        return f"fetch one into a folder (hf download {other.name}{revision} --local-dir=NAME) and give that instead"
    return f"give a link to the folder {_place(first if other else second)} with another name (ln -s)"
