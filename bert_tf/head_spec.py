"""The head that a task wants on top of the encoder: all that tasks and modeling both know of it."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

# Kinds that the package knows; others may be registered. Of a sentence or pair: one of several classes, a number, any of
# several classes. An answer in a text, a tag for each word, one of several continuations, vectors of texts that are alike.
CLASSIFICATION, REGRESSION, MULTI_LABEL = "classification", "regression", "multi_label"
SPAN, TAGS, CHOICE, SIMILARITY = "span", "tags", "choice", "similarity"
CONTRASTIVE = "contrastive"  # vectors of texts that belong together, told apart from all others
PRETRAINING = "pretraining"  # the words that [MASK] covers, and whether one text follows another
VECTORS = "vectors"  # of texts, or of their tokens, as the encoder computes them: nothing is learned on top

BEST_WORDS = 10  # that the head of pre-training puts out for each masked place

POOLINGS = MEAN, CLS, MAX = "mean", "cls", "max"  # how the vectors of tokens become that of their text

# How the names of a head's variables begin, as a regular expression: those of the published classifier; `cls` of published
# pre-training and question answering; `head` where there is no published name.
VARIABLE_SCOPES = "output_weights|output_bias|cls|head"


@dataclasses.dataclass(frozen=True)
class HeadSpec:
    """A head by kind and size.

    Attributes:
      num_labels: outputs at each place: classes, labels, tags; 1 for a number.
      kind: key of the registries of families and heads.
      options: what else the head is made of, by name.
    """

    num_labels: int
    kind: str = CLASSIFICATION
    options: tuple[tuple[str, Any], ...] = ()


class Sizes(NamedTuple):
    """How many numbers a head holds, as how often it holds tensors of each size.

    Attributes:
      tokens: a hidden state of each token.
      positions: the same of each position, padding included.
      rows: the same of each row.
      numbers: one number of each position.
      token_numbers: one number of each token.
      places: a hidden state of each place that is read.
      place_numbers: one number of each place.
      scores: of each place one number for each word of the vocabulary.
    """

    tokens: float = 0.0
    positions: float = 0.0
    rows: float = 0.0
    numbers: float = 0.0
    token_numbers: float = 0.0
    places: float = 0.0
    place_numbers: float = 0.0
    scores: float = 0.0


class HeadMemory(NamedTuple):
    """What a head and its loss hold in training, beside what the encoder has made.

    Attributes:
      kept: from the forward pass to the backward pass.
      forward: beside that, while the head is computed.
      backward: beside that, while its gradient is.
    """

    kept: Sizes = Sizes()
    forward: Sizes = Sizes()
    backward: Sizes = Sizes()


_ONE_ROW = Sizes(rows=1)
OF_POOLED = HeadMemory(Sizes(rows=3), _ONE_ROW, _ONE_ROW)  # what is dropped of pooled vectors, and how
