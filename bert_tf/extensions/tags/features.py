"""Features of tagged words: the first piece of a word represents it; long sentences become windows.

Shapes: E sentences, W words of all of them, P word pieces, N rows, K places of words in rows: a word is in several windows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features.columns import Features, IntArray, joined, marked_rows, ranges
from bert_tf.fields import TOKEN, Field
from bert_tf.tokenization.tokenizer import Tokenizer

NO_TAG = -1  # of tokens that represent no word
TAGS = Field("tag_ids", TOKEN, padding=NO_TAG)
WORDS = Field("word_ids", TOKEN, padding=NO_TAG, in_batches=False)  # number of the word in its sentence
FIELDS = (TAGS, WORDS)

_SPECIAL = 2  # [CLS] and [SEP]
_STEP_PARTS = 2  # a window begins half a window after the one before
_WHOLE = np.iinfo(np.int64).max  # context where the sentence ends, not the window

Longs = npt.NDArray[np.int64]


class _Windows(NamedTuple):
    """The words of each row."""

    example_ids: Longs  # [N] sentence
    first: Longs  # [N] number of its first word, among all W
    end: Longs  # [N] one past its last word


def build(sentences: Sequence[Sequence[str]], tag_ids: IntArray, tokenizer: Tokenizer, *, max_seq_length: int) -> Features:
    """Converts E sentences with tags [W] to features with `FIELDS`; the weight of a row is its number of tags.

    A word is read in each of its windows but tagged only in the one with most context on the poorer side. A word longer
    than a row is cut. A word without pieces, as of control characters, is in no row.
    """
    room = max_seq_length - _SPECIAL
    uncut = [pieces for sentence in sentences for pieces in tokenizer.of_words(sentence)]
    ids = [pieces[:room] for pieces in uncut]
    counts = np.fromiter(map(len, sentences), np.int64, len(sentences))  # [E]
    begins = np.concatenate([[0], np.cumsum(counts)])  # [E + 1] first word of each sentence
    words = joined(ids)
    pieces = np.append(words.starts, len(words.ids))  # [W + 1] first piece of each
    windows = _windows(begins, pieces, room)
    read = (pieces[windows.end] - pieces[windows.first]).astype(np.int32)  # [N]
    lengths = read + np.int32(_SPECIAL)
    token_ids, starts = marked_rows(lengths, tokenizer.vocabulary)
    token_ids[ranges(starts + 1, read)] = words.ids[ranges(pieces[windows.first], read)]
    row, word = _chosen(windows, begins, pieces)
    places = starts[row] + 1 + pieces[word] - pieces[windows.first[row]]
    targets = {field.name: np.full(len(token_ids), NO_TAG, np.int32) for field in FIELDS}
    targets[TAGS.name][places] = tag_ids[word]
    targets[WORDS.name][places] = word - begins[windows.example_ids[row]]
    long_words = [number for number, of_word in enumerate(uncut) if len(of_word) > room]
    return Features(
        token_ids=token_ids,
        lengths=lengths,
        first_lengths=lengths,
        targets=targets,
        fields=FIELDS,
        example_ids=windows.example_ids.astype(np.int32),
        weights=np.bincount(row, minlength=len(lengths)).astype(np.int32),
        truncated=len(np.unique(np.searchsorted(np.cumsum(counts), long_words, side="right"))),
    )


def _windows(begins: Longs, pieces: Longs, room: int) -> _Windows:
    totals = pieces[begins[1:]] - pieces[begins[:-1]]  # [E]
    long = np.flatnonzero(totals > room)
    cut = {
        sentence: [
            (first + begins[sentence], end + begins[sentence])
            for first, end in overlapping(pieces[begins[sentence] : begins[sentence + 1] + 1], room)
        ]
        for sentence in long.tolist()
    }
    rows = np.ones(len(totals), np.int64)
    rows[long] = [len(of_sentence) for of_sentence in cut.values()]
    example_ids = np.repeat(np.arange(len(totals)), rows)
    first, end = begins[example_ids], begins[example_ids + 1]
    in_parts = np.isin(example_ids, long)
    if len(long):
        first[in_parts], end[in_parts] = np.array(list(itertools.chain.from_iterable(cut.values()))).T
    return _Windows(example_ids, first, end)


def overlapping(bounds: Longs, room: int) -> Iterator[tuple[int, int]]:
    """Yields first and end (exclusive) word of each window of a sentence; the last window ends with it.

    `bounds` [words + 1] are the piece offsets of words; no word may have more than `room` pieces.

    >>> list(overlapping(np.array([0, 2, 3, 4, 6, 7, 9]), 5))
    [(0, 3), (1, 5), (3, 6)]
    """
    words, first = len(bounds) - 1, 0
    while bounds[-1] - bounds[first] > room:
        end = int(np.searchsorted(bounds, bounds[first] + room, side="right")) - 1
        yield first, end
        half = int(np.searchsorted(bounds, bounds[first] + room // _STEP_PARTS))
        first = min(max(half, first + 1), end)
    yield int(np.searchsorted(bounds, bounds[-1] - room)), words


def _chosen(windows: _Windows, begins: Longs, pieces: Longs) -> tuple[Longs, Longs]:
    """Row and number of each word with pieces, in its window of most context, the first on a tie."""
    counts = (windows.end - windows.first).astype(np.int32)
    row = np.repeat(np.arange(len(counts)), counts)  # [K]
    word = ranges(windows.first, counts)  # [K]
    if len(windows.first) > len(begins) - 1:
        before = np.where(windows.first == begins[windows.example_ids], _WHOLE, -pieces[windows.first])  # [N]
        after = np.where(windows.end == begins[windows.example_ids + 1], _WHOLE, pieces[windows.end])
        left = np.where(before[row] == _WHOLE, _WHOLE, pieces[word] + before[row])
        right = np.where(after[row] == _WHOLE, _WHOLE, after[row] - pieces[word + 1])
        order = np.lexsort((row, -np.minimum(left, right), word))
        best = order[np.flatnonzero(np.diff(word[order], prepend=-1))]
        row, word = row[best], word[best]
    real = pieces[word + 1] > pieces[word]
    return row[real], word[real]
