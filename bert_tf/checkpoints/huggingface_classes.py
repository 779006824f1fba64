"""Heads by kind as classes of transformers, and the names of their weights.

Shapes: D hidden size, L labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

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
)


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A class of transformers.

    Attributes:
      name: of the class.
      prefix: of the encoder's weights.
      weights: of the head, published name to that of the class; both are [L, D] and [L].
      has_pooler: whether the class has one.
      problem_type: what `config.json` says of the labels.
      pipeline: what the hub calls the task.
      makes_vectors: whether it is laid out for sentence-transformers, too.
    """

    name: str
    prefix: str = "bert."
    weights: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_pooler: bool = True
    problem_type: str | None = None
    pipeline: str = "text-classification"
    makes_vectors: bool = False


_CLASSIFIER = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
_SPAN = {"cls/squad/output_weights": "qa_outputs.weight", "cls/squad/output_bias": "qa_outputs.bias"}
_SEQUENCE = Architecture("BertForSequenceClassification", weights=_CLASSIFIER)
_VECTORS = Architecture("BertModel", prefix="", pipeline="sentence-similarity", makes_vectors=True)

CLASSES: dict[str, Architecture] = {
    CLASSIFICATION: dataclasses.replace(_SEQUENCE, problem_type="single_label_classification"),
    REGRESSION: dataclasses.replace(_SEQUENCE, problem_type="regression"),
    MULTI_LABEL: dataclasses.replace(_SEQUENCE, problem_type="multi_label_classification"),
    CHOICE: Architecture("BertForMultipleChoice", weights=_CLASSIFIER, pipeline="multiple-choice"),
    TAGS: Architecture("BertForTokenClassification", weights=_CLASSIFIER, has_pooler=False, pipeline="token-classification"),
    SPAN: Architecture("BertForQuestionAnswering", weights=_SPAN, has_pooler=False, pipeline="question-answering"),
    PRETRAINING: Architecture("BertForPreTraining", pipeline="fill-mask"),
    **dict.fromkeys((SIMILARITY, CONTRASTIVE, VECTORS), _VECTORS),
}


MASKED_WORDS = Architecture("BertForMaskedLM", has_pooler=False, pipeline="fill-mask")
BARE = Architecture("BertModel", prefix="")


def of(kind: str, *, next_sentence: bool = True) -> Architecture:
    """Returns the class for a kind of head.

    Args:
      kind: of the head.
      next_sentence: whether one of pre-training has logits of the pair.

    Raises:
      FlagError: transformers has none, or it is not known here.
    """
    if kind not in CLASSES:
        raise FlagError(f"{unknown_name('kind of head of transformers', kind, CLASSES)}; take --format=saved_model")
    return CLASSES[kind] if next_sentence else MASKED_WORDS


def register(kind: str, architecture: Architecture) -> None:
    """Adds a class, for a head that is registered elsewhere too.

    Args:
      kind: of the head.
      architecture: the class.

    Raises:
      ValueError: the name is taken.
    """
    if CLASSES.setdefault(kind, architecture) != architecture:
        raise ValueError(f"there is a class for {kind!r} already")
