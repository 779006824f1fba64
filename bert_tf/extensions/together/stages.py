"""The stages of an encoder, told apart by the digests of their weights, and computed once for all models that share them."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.modeling.execution import Once
from bert_tf.modeling.packing import Tokens

T = TypeVar("T")
Stage = Union[str, int]
Digests = Mapping[Stage, str]
Path = tuple[Any, ...]  # of a model: its stages from the first one on, each with what it reads and the digest of its weights

_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")
_EMBEDDINGS = re.compile(r"bert/embeddings/(?:(?:word|token_type|position)_embeddings$|LayerNorm/)")


def digests(reader: CheckpointReader, config: BertConfig, *, layers: int | None = None) -> dict[Stage, str]:
    """SHA-256 of the weights of each stage before the pooler, by stage; raises CheckpointError for damaged weights.

    `layers` are the lowest that are read, None for all.
    """
    sums: dict[Stage, Any] = {}
    for name in sorted(encoder_shapes(config)):
        stage = _stage(name)
        if stage is not None and (layers is None or not isinstance(stage, int) or stage < layers):
            digest = sums.setdefault(stage, hashlib.sha256())
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(reader[name], np.float32))
    return {stage: one.hexdigest() for stage, one in sums.items()}


def _stage(variable: str) -> Stage | None:
    """The first stage that reads a variable of an encoder; None for those after the last layer."""
    layer = _LAYER.match(variable)
    if layer:
        return int(layer[1])
    if _EMBEDDINGS.match(variable):
        return "embeddings"
    if variable.startswith("bert/embeddings/"):
        return "positions"
    return "projection" if variable.startswith("bert/embeddings_project/") else None


class Shared:
    """What is built in each graph, by the path of stages to it."""

    def __init__(self) -> None:
        self._built: weakref.WeakKeyDictionary[tf.Graph, dict[Path, Any]] = weakref.WeakKeyDictionary()

    def of_graph(self, graph: tf.Graph | None = None) -> dict[Path, Any]:
        return self._built.setdefault(graph or tf.compat.v1.get_default_graph(), {})

    def end(self, graph: tf.Graph, path: Path) -> tf.Tensor:
        """The tensor at the end of a path to a layer, whose value may be fed."""
        fed: tf.Tensor = self.of_graph(graph)[path].op.inputs[0]
        return fed


class OnceForAll(Once):
    """Of one model: a stage is that of another model if it and all before it have the same weights."""

    def __init__(self, shared: Shared, of_stages: Digests, config: BertConfig) -> None:
        self._shared, self._digests, self._config = shared, of_stages, config
        self.path: Path = ()  # of what is built

    def __call__(self, stage: Stage, reads: Any, make: Callable[[], T]) -> T:
        if stage == "embeddings":
            self.path = ()
        weights = self._config.weights_of_layer(stage) if isinstance(stage, int) else stage
        tokens = reads if reads is None or isinstance(reads, Tokens) else id(reads)  # places are of one head
        self.path = (*self.path, (stage, tokens, self._digests.get(weights, "")))
        built = self._shared.of_graph()
        if self.path not in built:
            made: Any = make()
            if isinstance(stage, int):  # the shape of one that is fed would be lost
                made = tf.ensure_shape(tf.identity(made), made.shape)
            built[self.path] = made
        result: T = built[self.path]
        return result


@dataclasses.dataclass(frozen=True)
class Branch:
    """What some models have in common, up to where they part; the rest of a single model."""

    models: tuple[int, ...]
    path: Path = ()  # to its last layer; empty for a single model
    branches: tuple[Branch, ...] = ()


def branches(paths: Mapping[int, Path], start: int = 0) -> tuple[Branch, ...]:
    """The tree of models by their paths, which are equal before `start`."""
    groups: dict[Any, dict[int, Path]] = {}
    for model, path in paths.items():
        groups.setdefault(path[start : start + 1] or model, {})[model] = path
    tree: list[Branch] = []
    for group in groups.values():
        if len(group) == 1:
            tree.append(Branch(tuple(group)))
            continue
        equal = itertools.takewhile(lambda stages: len(set(stages)) == 1, zip(*group.values()))
        path = tuple(stages[0] for stages in equal)
        below = branches(group, len(path))
        is_layer = isinstance(path[-1][0], int)  # embeddings alone are not worth a stop
        tree += [Branch(tuple(group), path, below)] if is_layer else below
    return tuple(tree)
