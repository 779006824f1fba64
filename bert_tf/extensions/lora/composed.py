"""A checkpoint of low-rank updates as the whole model: the parent's weights, with the updates added to its matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from bert_tf import run_layout
from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader, model_reader
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.extensions.lora import adapter
from bert_tf.extensions.lora.names import ADAPTER, DOWN, UP

Array = npt.NDArray[Any]


def composed(reader: CheckpointReader) -> CheckpointReader | None:
    """Returns the whole model of a checkpoint of updates; None for any other checkpoint."""
    return Composed(reader) if scopes(reader.shapes) else None


def scopes(names: Iterable[str]) -> frozenset[str]:
    """Scopes of the matrices that have an update among the variables."""
    return frozenset(name[: -len(DOWN) - 1] for name in names if name.endswith(f"/{DOWN}"))


class Composed(CheckpointReader):
    """Encoder of the parent with updates, head and step of the checkpoint."""

    composed = True

    def __init__(self, updates: CheckpointReader) -> None:  # opened already
        """Raises CheckpointError if the parent is missing, has changed, or does not have the other weights."""
        self.prefix, self._updates = updates.prefix, updates
        folder = Path(self.prefix).parent
        self._adapter = adapter.read_adapter(folder)
        self._adapter.refuse_other_parent(self.prefix)
        self._parent = model_reader(self._adapter.parent)
        self._matrices = scopes(updates.shapes)
        config = BertConfig.from_json_file(folder / run_layout.CONFIG)
        if len(self._adapter.layers) not in (0, config.num_hidden_layers):
            number = len(self._adapter.layers)
            raise CheckpointError(
                f"{folder / ADAPTER}: damaged: {number} layers of the {config.num_hidden_layers} of the model; restore it"
            )
        plan = plan_restore(self._parent, config, (), self._adapter.layers)
        encoder = encoder_shapes(config)
        own_names = [name for name in updates.shapes if f"/{DOWN}" not in name and f"/{UP}" not in name]  # nor their moments
        self._stored = {name: plan.stored(name) for name in plan.loaded if name not in own_names}
        missing = next((name for name in encoder if name not in own_names and name not in self._stored), None)
        if missing:
            raise CheckpointError(f"{self.prefix}: {missing} is neither in it nor, in this shape, in {self._parent.prefix}")
        self._refuse_misfits(encoder)
        self.shapes = {**{name: updates.shapes[name] for name in own_names}, **{name: encoder[name] for name in self._stored}}
        of_parent = {name: self._parent.dtypes[stored] for name, stored in self._stored.items()}
        merged = dict.fromkeys((f"{scope}/kernel" for scope in self._matrices), tf.float32)
        self.dtypes = {**{name: updates.dtypes[name] for name in own_names}, **of_parent, **merged}

    def _refuse_misfits(self, encoder: Mapping[str, tuple[int, ...]]) -> None:
        for scope in self._matrices:
            down, up = (self._updates.shapes.get(f"{scope}/{part}", ()) for part in (DOWN, UP))
            wide = encoder.get(f"{scope}/kernel", ())
            if not len(down) == len(up) == 2 or down[1:] != up[:1] or (down[0], up[1]) != wide:
                raise CheckpointError(f"{self.prefix}: {scope} is {list(wide)}, its update {list(down)} times {list(up)}")
            if f"{scope}/kernel" not in self._stored:
                raise CheckpointError(f"{self.prefix}: {scope} has an update, and weights of its own")

    def __getitem__(self, name: str) -> Array:
        if name not in self._stored:
            return self._updates[name]
        value = self._parent[self._stored[name]]
        scope = name.rpartition("/")[0]
        if scope not in self._matrices or not name.endswith("/kernel"):
            return value
        down, up = (self._updates[f"{scope}/{part}"].astype(np.float32) for part in (DOWN, UP))
        return value.astype(np.float32) + product(down, up * np.float32(self._adapter.scaling_of(scope)))


def product(down: npt.NDArray[np.float32], up: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """[D, R] times [R, E], summed in the order of ranks: libraries of products round by the number of threads."""
    total = np.zeros((down.shape[0], up.shape[1]), np.float32)
    for column, row in zip(down.T, up):
        total += np.multiply.outer(column, row)
    return total
