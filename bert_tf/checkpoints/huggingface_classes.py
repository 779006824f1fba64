"""Maps head kinds to classes of transformers and the names of their weights."""

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
    """A class of transformers."""

    name: str  # of the class
    prefix: str = "bert."  # of the encoder's weights
    # published name to the class's; [labels, hidden] and [labels]
    weights: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_pooler: bool = True
    problem_type: str | None = None  # of the labels, in config.json
    pipeline: str = "text-classification"  # task name on the hub
    makes_vectors: bool = False  # whether a sentence-transformers layout is added


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
    if kind not in CLASSES:
        raise FlagError(f"{unknown_name('kind of head of transformers', kind, CLASSES)}; take --format=saved_model")
    return CLASSES[kind] if next_sentence else MASKED_WORDS


def register(kind: str, architecture: Architecture) -> None:
    if CLASSES.setdefault(kind, architecture) != architecture:
        raise ValueError(f"there is a class for {kind!r} already")
