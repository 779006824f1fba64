"""Cuts texts that are longer than a sequence.

Shapes: E examples, N rows of features; lengths and places are counted in tokens, without [CLS] and [SEP].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import IntArray, Span

TRUNCATE, HEAD_TAIL, WINDOWS = "truncate", "head_tail", "windows"
LONGEST_FIRST = "longest_first"

# A cut text keeps a quarter of its room for its head, as 128 of 510 tokens were best for Sun et al. (2019, arXiv 1905.05583).
_HEAD_PARTS = 4
# A window begins half a window after the one before: most tokens are in two, and no token is at the edge of both.
_WINDOW_PARTS = 2


class Cut(NamedTuple):
    """Parts of an example's texts in each row."""

    first: tuple[Span, ...]  # pieces of the first text, one after the other
    second: tuple[Span, ...]  # pieces of the second
    truncated: int  # examples with tokens that are in no row
    example_ids: IntArray | None = None  # [N] example of a row; None if rows are examples


def truncated_lengths(first: IntArray, second: IntArray, limit: IntArray) -> tuple[IntArray, IntArray]:
    """Kept tokens [E] of each text, cutting the longer until both fit `limit` [E]; `second` is 0 if absent.

    That is the published rule. Removing one token at a time from the longer, the second on a tie, ends when the longer
    is cut to the other's length, and then both to half the limit, the odd token going to the first.

    >>> truncated_lengths(np.array([4, 1]), np.array([3, 9]), np.array([5, 5]))
    (array([3, 1]), array([2, 4]))
    """
    half = limit // 2
    kept_second = np.minimum(second, np.maximum(half, limit - first))
    return np.minimum(first, limit - kept_second), kept_second


def truncate(first: IntArray, second: IntArray, limit: IntArray) -> Cut:
    """Keeps the beginning of each text, as the published script; arguments as for `truncated_lengths`."""
    kept_first, kept_second = truncated_lengths(first, second, limit)
    return Cut((_head(kept_first),), (_head(kept_second),), int(np.sum(first + second > limit)))


def longest_first(first: IntArray, second: IntArray, limit: IntArray) -> Cut:
    """As Hugging Face `tokenizers`: like `truncate`, but the odd token is that of the longer text, of the second on a tie."""
    is_longer = first > second
    in_order, swapped = truncated_lengths(first, second, limit), truncated_lengths(second, first, limit)[::-1]
    first_kept, second_kept = (np.where(is_longer, length, other) for length, other in zip(in_order, swapped))
    return Cut((_head(first_kept),), (_head(second_kept),), int(np.sum(first + second > limit)))


def head_tail(first: IntArray, second: IntArray, limit: IntArray) -> Cut:
    """Keeps as much of each text as `truncate`: the first quarter from its beginning, the rest from its end."""
    kept_first, kept_second = truncated_lengths(first, second, limit)
    return Cut(_ends(first, kept_first), _ends(second, kept_second), int(np.sum(first + second > limit)))


def windows(first: IntArray, second: IntArray, limit: IntArray) -> Cut:
    """Moves a window over the longer text of each example, the second on a tie; every window is a row.

    The other text is in every row, cut to half the limit if longer. Windows fill the remaining room; the last one ends with
    the text, and so may overlap by more than a half.
    """
    longer, other = np.maximum(first, second), np.minimum(first, second)
    other_kept = np.where(longer + other > limit, np.minimum(other, limit // 2), other)
    size = np.minimum(longer, limit - other_kept)
    step = np.maximum(-(-size // _WINDOW_PARTS), 1)
    counts = 1 - (size - longer) // step  # [E] windows, rounded up
    example_ids = np.repeat(np.arange(len(counts), dtype=np.int32), counts)  # [N]
    number = np.arange(len(example_ids), dtype=np.int32) - np.repeat(np.cumsum(counts, dtype=np.int32) - counts, counts)
    moving = Span(np.minimum(number * step[example_ids], (longer - size)[example_ids]), size[example_ids])
    still = _head(other_kept[example_ids])
    moves_first = (first > second)[example_ids]
    spans = (_either(moves_first, moving, still),), (_either(moves_first, still, moving),)
    return Cut(*spans, int(np.sum(other_kept < other)), example_ids)


def _head(lengths: IntArray) -> Span:
    return Span(np.zeros_like(lengths), lengths)


def _ends(lengths: IntArray, kept_lengths: IntArray) -> tuple[Span, Span]:
    head = np.where(kept_lengths < lengths, -(-kept_lengths // _HEAD_PARTS), kept_lengths)
    tail = kept_lengths - head
    return _head(head), Span(lengths - tail, tail)


def _either(condition: npt.NDArray[np.bool_], yes: Span, no: Span) -> Span:
    return Span(np.where(condition, yes.starts, no.starts), np.where(condition, yes.lengths, no.lengths))


CUTS: dict[str, Callable[[IntArray, IntArray, IntArray], Cut]] = {
    TRUNCATE: truncate,
    HEAD_TAIL: head_tail,
    WINDOWS: windows,
}
# The last is no setting: a tokenizer.json has it, and exports are compared with it.
CUTS_OF_LIBRARIES = {**CUTS, LONGEST_FIRST: longest_first}
