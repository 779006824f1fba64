"""Heads by kind."""

from __future__ import annotations

from collections.abc import Callable

from bert_tf.errors import FlagError, unknown_name
from bert_tf.head_spec import HeadSpec
from bert_tf.kinds import Registry
from bert_tf.modeling.heads.base import Head

MakeHead = Callable[..., Head]  # from `HeadSpec.num_labels`, and its options by name

_HEADS = Registry[MakeHead]("head")


def register(kind: str, make: MakeHead) -> None:
    """Registers a head; its task family must be registered under the same kind, see `tasks.families`.

    Args:
      kind: unique name of the head.
      make: creates the head from a number of labels and options.

    Raises:
      ValueError: the name is taken.
    """
    _HEADS.register(kind, make)


def is_known(kind: str) -> bool:
    return kind in _HEADS


def make_head(spec: HeadSpec) -> Head:
    """Head for a specification; FlagError if its kind is not registered."""
    if spec.kind not in _HEADS:
        raise FlagError(f"{unknown_name('kind of head', spec.kind, _HEADS)}; register it (modeling.heads.registry.register)")
    return _HEADS[spec.kind](spec.num_labels, **dict(spec.options))
