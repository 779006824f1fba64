"""Kinds of tasks: one row for each, with its objects in each layer; imported on first use. Extensions add some."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, TypeVar

from bert_tf import extension
from bert_tf.errors import BertError
from bert_tf.extension import NewKind
from bert_tf.head_spec import (
    CLASSIFICATION,
    MULTI_LABEL,
    REGRESSION,
)

T = TypeVar("T")


def _of_sentences(head: str, hints: str) -> NewKind:
    return NewKind(
        family="bert_tf.tasks.sentence.family:SentenceFamily",
        head=f"bert_tf.modeling.heads.sentence:{head}",
        prediction=f"bert_tf.tasks.sentence.family:{hints}",
    )


# Kinds of the core; names as in an extension.
KINDS: Mapping[str, NewKind] = {
    CLASSIFICATION: _of_sentences("ClassificationHead", "CLASS"),
    REGRESSION: _of_sentences("RegressionHead", "NUMBER"),
    MULTI_LABEL: _of_sentences("MultiLabelHead", "LABELS"),
}


class Registry(MutableMapping[str, T]):
    """A layer's objects by kind: a field of `NewKind` in `KINDS` and in extensions, and objects registered from outside.

    A layer of an extension names its objects of the core's kinds itself (`of_core`).
    """

    def __init__(self, column: str, of_core: Mapping[str, str] = MappingProxyType({})) -> None:
        self._column, self._of_core, self._made = column, of_core, dict[str, T]()

    @functools.cached_property
    def _names(self) -> dict[str, str]:
        """Module and name by kind; extensions import this module, so that they are asked later."""
        of_core = {kind: name for kind, row in KINDS.items() if (name := getattr(row, self._column))}
        names = {**of_core, **self._of_core}
        added = {kind: name for kind, new in extension.named("kinds").items() if (name := getattr(new, self._column))}
        for kind in added.keys() & names.keys():
            raise BertError(f"{added[kind]}: there is a {self._column} {kind} already; correct or uninstall its package")
        return {**names, **added}

    def __getitem__(self, kind: str) -> T:
        if kind not in self._made:
            self._made[kind] = extension.load(self._names[kind])
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
