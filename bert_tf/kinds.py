"""Kinds of tasks: one row for each, with its objects in each layer; imported on first use. Extensions add some."""

from __future__ import annotations

import functools
from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple, TypeVar

from bert_tf import extension
from bert_tf.errors import BertError
from bert_tf.head_spec import (
    CLASSIFICATION,
    CONTRASTIVE,
    MULTI_LABEL,
    PRETRAINING,
    REGRESSION,
    SIMILARITY,
    VECTORS,
)

T = TypeVar("T")

_MODULES = {
    "family": "tasks.{}.family",
    "head": "modeling.heads.{}",
    "nodes": "conversion.heads",
    "client": "export.saved_model.{}",
}


class Kind(NamedTuple):
    """Names of objects as MODULE:NAME, in the modules above; empty if a layer has none."""

    family: str
    head: str
    nodes: str = ""  # of ONNX
    client: str = ""  # how clients of a SavedModel send raw text


KINDS = {
    CLASSIFICATION: Kind("sentence:SentenceFamily", "sentence:ClassificationHead", ":of_pooled", "sentences:labelled"),
    REGRESSION: Kind("sentence:SentenceFamily", "sentence:RegressionHead", ":of_pooled", "sentences:labelled"),
    MULTI_LABEL: Kind("sentence:SentenceFamily", "sentence:MultiLabelHead", ":of_pooled", "sentences:labelled"),
    SIMILARITY: Kind("similarity:SimilarityFamily", "vectors:CosineHead", ":of_pairs", "sentences:alike"),
    CONTRASTIVE: Kind("similarity:ContrastiveFamily", "vectors:ContrastiveHead", ":of_pairs", "sentences:alike"),
    PRETRAINING: Kind("", "pretraining:PretrainingHead"),  # the family is an extension's
    VECTORS: Kind("", "vectors:VectorsHead", ":of_vectors"),
}


def loaded(name: str) -> Any:
    """Imports module:name; raises BertError for whatever the module of another package does when it is imported."""
    if name.startswith("bert_tf."):
        return extension.load(name)
    try:
        return extension.load(name)
    except Exception as error:
        raise BertError(f"{name}: {type(error).__name__}: {error}; correct or uninstall its package") from error


class Registry(MutableMapping[str, T]):
    """A layer's objects by kind: a column of `KINDS`, those of extensions, and objects registered from outside."""

    def __init__(self, column: str) -> None:
        self._column, self._made = column, dict[str, T]()

    @functools.cached_property
    def _names(self) -> dict[str, str]:
        """Module and name by kind; extensions import this module, so that they are asked later."""
        names = {}
        for kind, row in KINDS.items():
            module, _, name = getattr(row, self._column).partition(":")
            if name:
                names[kind] = f"bert_tf.{_MODULES[self._column].format(module)}:{name}"
        added = {kind: name for kind, new in extension.kinds().items() if (name := getattr(new, self._column))}
        for kind in added.keys() & names.keys():
            raise BertError(f"{added[kind]}: there is a {self._column} {kind} already; correct or uninstall its package")
        return {**names, **added}

    def __getitem__(self, kind: str) -> T:
        if kind not in self._made:
            self._made[kind] = loaded(self._names[kind])
        return self._made[kind]

    def __setitem__(self, kind: str, made: T) -> None:
        self._made[kind] = made

    def __delitem__(self, kind: str) -> None:
        del self._made[kind]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._names, **self._made})

    def __len__(self) -> int:
        return len({**self._names, **self._made})

    def register(self, kind: str, made: Any) -> None:
        """Adds a kind; raises `ValueError` if the name is taken."""
        if self.setdefault(kind, made) is not made:
            raise ValueError(f"there is a {self._column} {kind!r} already")
