"""The most probable tags of sentences, independently or among valid sequences (Viterbi, 1967).

Shapes: E sentences, W words of all of them, T words of the longest, A sentences not yet at their end, L tags.
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
    """Valid tag sequences."""

    first: npt.NDArray[np.bool_]  # [L] tag may begin a sentence
    after: npt.NDArray[np.bool_]  # [L, L] tag of a column may follow that of a row


def iob2(labels: Sequence[str]) -> Legal:
    """Valid sequences in IOB2: I follows B or I of its type, other tags follow any tag."""
    inside = [label[0] == "I" for label in labels]
    same = [[before != OUTSIDE and before[1:] == label[1:] for label in labels] for before in labels]
    return Legal(~np.array(inside), ~np.array(inside) | np.array(same))


def is_illegal(tags: Ints, lengths: Ints, legal: Legal) -> npt.NDArray[np.bool_]:
    """Returns [W] whether a tag is invalid in its position; tags [W], lengths [E] words per sentence."""
    first = np.zeros(len(tags), np.bool_)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    before = np.roll(tags, 1)
    found: npt.NDArray[np.bool_] = ~np.where(first, legal.first[tags], legal.after[before, tags])
    return found


def viterbi(scores: Floats, lengths: Ints, legal: Legal) -> Ints:
    """Returns [W] valid tags with the highest score sum per sentence; of ties, the first.

    scores [W, L] of all concatenated sentences are log-probabilities or logits; lengths [E] are words per sentence.
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
    """Decodes some sentences, longest first, into their positions in `found`."""
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
