"""Compares true and predicted entities: which are found, and how the others are missed.

Shapes: E sentences, W words of all of them, G true entities, P predicted ones.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.tasks.tags import schemes

Ints = npt.NDArray[np.int64]

MISSED, INVENTED = "missed", "invented"
WRONG_TYPE, WRONG_BORDER, WRONG_BOTH = "wrong type", "wrong border", "wrong type and border"
KINDS = (MISSED, INVENTED, WRONG_TYPE, WRONG_BORDER, WRONG_BOTH)
_NONE = -1


class Found(NamedTuple):
    """An entity, by position among all words."""

    start: int  # first word
    end: int  # exclusive
    type: str  # for example PER


class Error(NamedTuple):
    """An entity that is missed, distorted or invented."""

    kind: str  # of `KINDS`
    label: Found | None  # true entity; None if invented
    predicted: Found | None  # overlapping or invented entity; None if missed


def entities(tags: Sequence[str], lengths: Ints) -> list[Found]:
    """Returns the entities of W tags in sentences of lengths [E]; none crosses a sentence boundary."""
    ends = np.cumsum(lengths)
    divided: list[str] = []
    at = 0
    for end in ends.tolist():
        divided += [*tags[at:end], schemes.OUTSIDE]
        at = end
    word_of = np.arange(len(divided)) - np.repeat(np.arange(len(lengths)), lengths + 1)
    return [Found(int(word_of[first]), int(word_of[end - 1]) + 1, kind) for kind, first, end in schemes.entities_of(divided)]


def begun(found: Sequence[Found], tags: Sequence[str]) -> list[Found]:
    """Returns the entities that begin with B: others do not count in seqeval's strict mode."""
    return [one for one in found if tags[one.start][0] == "B"]


def errors(there: Sequence[Found], predicted: Sequence[Found], words: int) -> Iterator[Error]:
    """Yields each true entity that is not found, then the predicted ones that overlap with none.

    If several predictions overlap with an entity, one of its type counts, else the first.
    """
    of_word = np.full(words, _NONE)
    for number, one in enumerate(predicted):
        of_word[one.start : one.end] = number
    is_there = np.zeros(words, np.bool_)
    right = set(there) & set(predicted)
    for label in there:
        is_there[label.start : label.end] = True
        if label not in right:
            near = [predicted[number] for number in np.unique(of_word[label.start : label.end]) if number != _NONE]
            yield _error(label, near)
    for one in predicted:
        if not is_there[one.start : one.end].any():
            yield Error(INVENTED, None, one)


def _error(label: Found, near: Sequence[Found]) -> Error:
    if not near:
        return Error(MISSED, label, None)
    same_type = [one for one in near if one.type == label.type]
    if same_type:
        return Error(WRONG_BORDER, label, same_type[0])
    same_place = near[0][:2] == label[:2]
    return Error(WRONG_TYPE if same_place else WRONG_BOTH, label, near[0])


def counts_by_sentence(found: Sequence[Found], lengths: Ints) -> Ints:
    """Returns [E] number of entities that begin in each sentence."""
    starts = np.array([one.start for one in found], np.int64)
    return np.bincount(np.searchsorted(np.cumsum(lengths), starts, side="right"), minlength=len(lengths))


def by_type(found: Sequence[Found]) -> collections.Counter[str]:
    return collections.Counter(one.type for one in found)
