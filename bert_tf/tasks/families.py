"""Registry of task families by kind: restores the family of a trained model from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.errors import unknown_name
from bert_tf.head_spec import CHOICE, CONTRASTIVE, PRETRAINING, SIMILARITY, SPAN, TAGS
from bert_tf.tasks.base import Family
from bert_tf.tasks.choice.family import ChoiceFamily
from bert_tf.tasks.pretraining.family import PretrainingFamily
from bert_tf.tasks.sentence.example import KINDS
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.similarity.family import ContrastiveFamily, SimilarityFamily
from bert_tf.tasks.span.family import SpanFamily
from bert_tf.tasks.tags.family import TagFamily

_FAMILIES: dict[str, type[Family]] = {
    **dict.fromkeys(KINDS, SentenceFamily),
    SPAN: SpanFamily,
    TAGS: TagFamily,
    CHOICE: ChoiceFamily,
    SIMILARITY: SimilarityFamily,
    CONTRASTIVE: ContrastiveFamily,
    PRETRAINING: PretrainingFamily,
}


def register(kind: str, family: type[Family]) -> None:
    """Adds a family; register its head under the same kind, see `modeling.heads.registry`.

    Args:
      kind: a unique name.
      family: its class, whose `from_record` creates the family of a trained model.

    Raises:
      ValueError: the name is taken.
    """
    if _FAMILIES.setdefault(kind, family) is not family:
        raise ValueError(f"there is a family {kind!r} already")


def is_known(kind: object) -> bool:
    return isinstance(kind, str) and kind in _FAMILIES


def of_record(record: Mapping[str, Any]) -> Family:
    """Restores the family of a record, see `estimator.run_folder.trained`; raises `ValueError` for an unknown kind."""
    kind = record["kind"]
    if not is_known(kind):
        raise ValueError(unknown_name("kind", str(kind), _FAMILIES))
    return _FAMILIES[kind].from_record(record)


def file_patterns() -> set[str]:
    return {pattern for family in _FAMILIES.values() for pattern in family.file_patterns}
