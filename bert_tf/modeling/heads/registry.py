"""Heads by kind."""

from __future__ import annotations

from collections.abc import Callable

from bert_tf.errors import FlagError, unknown_name
from bert_tf.head_spec import (
    CHOICE,
    CLASSIFICATION,
    CONTRASTIVE,
    MULTI_LABEL,
    PRETRAINING,
    REGRESSION,
    SIMILARITY,
    SPAN,
    TAGS,
    VECTORS,
    HeadSpec,
)
from bert_tf.modeling.heads.base import Head
from bert_tf.modeling.heads.choice import ChoiceHead
from bert_tf.modeling.heads.pretraining import PretrainingHead
from bert_tf.modeling.heads.sentence import ClassificationHead, MultiLabelHead, RegressionHead
from bert_tf.modeling.heads.similarity import ContrastiveHead, CosineHead
from bert_tf.modeling.heads.span import SpanHead
from bert_tf.modeling.heads.tags import TagHead
from bert_tf.modeling.heads.vectors import VectorsHead

MakeHead = Callable[..., Head]  # from `HeadSpec.num_labels`, and its options by name

_HEADS: dict[str, MakeHead] = {
    CLASSIFICATION: ClassificationHead,
    REGRESSION: RegressionHead,
    MULTI_LABEL: MultiLabelHead,
    CHOICE: ChoiceHead,
    SIMILARITY: CosineHead,
    CONTRASTIVE: ContrastiveHead,
    VECTORS: VectorsHead,
    TAGS: TagHead,
    SPAN: SpanHead,
    PRETRAINING: PretrainingHead,
}


def register(kind: str, make: MakeHead) -> None:
    """Registers a head; its task family must be registered under the same kind, see `tasks.families`.

    Args:
      kind: unique name of the head.
      make: creates the head from a number of labels and options.

    Raises:
      ValueError: the name is taken.
    """
    if _HEADS.setdefault(kind, make) is not make:
        raise ValueError(f"there is a head {kind!r} already")


def of(spec: HeadSpec) -> Head:
    """Head for a specification; FlagError if its kind is not registered."""
    if spec.kind not in _HEADS:
        raise FlagError(f"{unknown_name('kind of head', spec.kind, _HEADS)}; register it (modeling.heads.registry.register)")
    return _HEADS[spec.kind](spec.num_labels, **dict(spec.options))
