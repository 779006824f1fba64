"""The most probable tags of sentences, by themselves or among those that are legal together (Viterbi, 1967).

Shapes: E sentences, W words of all of them, T words of the longest, A sentences that are not at their end, L tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.tasks.tags.schemes import OUTSIDE

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

_PAIRS = 1 << 21  # of tags that are compared at a time, over all sentences that are decoded together


class Legal(NamedTuple):
    """Which tags may begin a sentence, and which may follow which.

    Attributes:
      first: [L] whether a tag may begin.
      after: [L, L] whether the tag of a column may follow that of a row.
    """

    first: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]


def iob2(labels: Sequence[str]) -> Legal:
    """Returns what is legal in IOB2: I follows B or I of its type, anything else follows anything."""
    inside = [label[0] == "I" for label in labels]
    same = [[before != OUTSIDE and before[1:] == label[1:] for label in labels] for before in labels]
    return Legal(~np.array(inside), ~np.array(inside) | np.array(same))


def is_illegal(tags: Ints, lengths: Ints, legal: Legal) -> npt.NDArray[np.bool_]:
    """Returns [W] whether a tag may not be where it is.

    Args:
      tags: [W] of all sentences.
      lengths: [E] words of each.
      legal: what may be where.
    """
    first = np.zeros(len(tags), np.bool_)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    before = np.roll(tags, 1)
    found: npt.NDArray[np.bool_] = ~np.where(first, legal.first[tags], legal.after[before, tags])
    return found


def viterbi(scores: Floats, lengths: Ints, legal: Legal) -> Ints:
    """Returns [W] the legal tags with the highest sum of scores in each sentence; of equal ones the first.

    Args:
      scores: [W, L] of all sentences, one after the other; log-probabilities or logits.
      lengths: [E] words of each.
      legal: what may be where.
    """
    found = np.empty(len(scores), np.int64)
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    together = max(1, _PAIRS // scores.shape[1] ** 2)
    for at in range(0, len(order), together):
        some = order[at : at + together]
        _decode(found, scores, starts[some], lengths[some], legal)
    return found


def _decode(found: Ints, scores: Floats, starts: Ints, lengths: Ints, legal: Legal) -> None:
    """Decodes some sentences, the longest first, into their places among all words."""
    never = np.where(legal.after, 0.0, -np.inf)  # [L, L]
    lengths = lengths[lengths > 0]
    active = [int(np.searchsorted(-lengths, -place, side="left")) for place in range(lengths[0] if len(lengths) else 0)]
    best, came = np.empty((0, scores.shape[1])), []
    for place, count in enumerate(active):
        here = scores[starts[:count] + place].astype(np.float64)  # [A, L]
        if not place:
            best = here + np.where(legal.first, 0.0, -np.inf)
            continue
        through = best[:count, :, None] + never  # [A, L, L]
        came.append(through.argmax(axis=1))  # [A, L] the tag before
        best = np.concatenate([through.max(axis=1) + here, best[count:]])
    tags = best.argmax(axis=1)  # [A] of the last word of each
    for place in reversed(range(len(active))):
        count = active[place]
        found[starts[:count] + place] = tags[:count]
        if place:
            tags[:count] = came[place - 1][np.arange(count), tags[:count]]
