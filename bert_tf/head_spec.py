"""The specification of a task's head on the encoder, shared by tasks and modeling."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

# Kinds that the package knows; others may be registered. For a sentence or pair: one of several classes, a number, any of
# several classes. An answer in a text, a tag per word, one of several continuations, vectors of similar texts.
CLASSIFICATION, REGRESSION, MULTI_LABEL = "classification", "regression", "multi_label"
SPAN, TAGS, CHOICE, SIMILARITY = "span", "tags", "choice", "similarity"
CONTRASTIVE = "contrastive"  # vectors that tell matching texts from all others
PRETRAINING = "pretraining"  # the words that [MASK] covers, and whether one text follows another
VECTORS = "vectors"  # of texts or tokens, from the encoder alone, without trained layers

PUBLISHED_WEIGHTS = "output_weights"  # variable of the published classifier

BEST_WORDS = 10  # output by the pre-training head for each masked place

POOLINGS = MEAN, CLS, MAX = "mean", "cls", "max"  # how token vectors are combined into a text vector

# Prefixes of a head's variables, as a regular expression: those of the published classifier; `cls` of published
# pre-training and question answering; `head` without a published name.
VARIABLE_SCOPES = "output_weights|output_bias|cls|head"


@dataclasses.dataclass(frozen=True)
class HeadSpec:
    """A head by kind and size."""

    num_labels: int  # outputs per place; 1 for regression
    kind: str = CLASSIFICATION  # key of the registries of families and heads
    options: tuple[tuple[str, Any], ...] = ()  # further parameters, by name


class Sizes(NamedTuple):
    """Numbers held by a head: how many tensors of each size, as multiples of the unit."""

    tokens: float = 0.0  # a hidden state per token
    positions: float = 0.0  # a hidden state per position, padding included
    rows: float = 0.0  # a hidden state per row
    numbers: float = 0.0  # one number per position
    token_numbers: float = 0.0  # one number per token
    places: float = 0.0  # a hidden state per place that is read
    place_numbers: float = 0.0  # one number per place
    scores: float = 0.0  # a number per place and word of the vocabulary


class HeadMemory(NamedTuple):
    """What a head and its loss hold in training, in addition to the encoder."""

    kept: Sizes = Sizes()  # from the forward to the backward pass
    forward: Sizes = Sizes()  # additionally during the forward pass
    backward: Sizes = Sizes()  # additionally during the backward pass


_ONE_ROW = Sizes(rows=1)
OF_POOLED = HeadMemory(Sizes(rows=3), _ONE_ROW, _ONE_ROW)  # dropout of pooled vectors
