"""The stages of an encoder, told apart by the digests of their weights, and computed once for all models that share them."""

from __future__ import annotations

import hashlib
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

_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")
_EMBEDDINGS = re.compile(r"bert/embeddings/(?:(?:word|token_type|position)_embeddings$|LayerNorm/)")


def digests(reader: CheckpointReader, config: BertConfig) -> dict[Stage, str]:
    """SHA-256 of the weights of each stage before the pooler, by stage; raises CheckpointError for damaged weights."""
    sums: dict[Stage, Any] = {}
    for name in sorted(encoder_shapes(config)):
        stage = _stage(name)
        if stage is not None:
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
    """What is built in each graph, by the digests of the stages up to it."""

    def __init__(self) -> None:
        self._built: weakref.WeakKeyDictionary[tf.Graph, dict[Any, Any]] = weakref.WeakKeyDictionary()

    def of_graph(self) -> dict[Any, Any]:
        return self._built.setdefault(tf.compat.v1.get_default_graph(), {})


class OnceForAll(Once):
    """Of one model: a stage is that of another model if it and all before it have the same weights."""

    def __init__(self, shared: Shared, of_stages: Digests, config: BertConfig) -> None:
        self._shared, self._digests, self._config = shared, of_stages, config
        self._before: tuple[Any, ...] = ()

    def __call__(self, stage: Stage, reads: Any, make: Callable[[], T]) -> T:
        if stage == "embeddings":
            self._before = ()
        weights = self._config.weights_of_layer(stage) if isinstance(stage, int) else stage
        tokens = reads if reads is None or isinstance(reads, Tokens) else id(reads)  # places are of one head
        self._before = (*self._before, (stage, tokens, self._digests.get(weights, "")))
        built = self._shared.of_graph()
        if self._before not in built:
            built[self._before] = make()
        result: T = built[self._before]
        return result
