"""From logits of tokens to the best answers of each question, over all of its windows.

Shapes: E questions, N rows (windows), R rows of a block, T tokens of its longest row, n logits that are looked at of each row.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.features import spans
from bert_tf.features.columns import Features

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_BLOCK = 256  # rows whose pairs of tokens are looked at together
_ASCII = "\x7f"


class Candidate(NamedTuple):
    """An answer that a model may give.

    Attributes:
      text: as it stands in the context; empty for no answer.
      start: first character in the context; None for no answer.
      end: the one after the last.
      window: number of the window that it was found in, from 0.
      start_logit: of its first token, of no answer that of [CLS].
      end_logit: of its last token.
    """

    text: str
    start: int | None
    end: int | None
    window: int
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        """What candidates are compared by."""
        return self.start_logit + self.end_logit


class Rules(NamedTuple):
    """Which answers there may be.

    Attributes:
      n_best_size: how many to each question, and how many logits of each row are looked at.
      max_answer_length: most word pieces.
    """

    n_best_size: int
    max_answer_length: int


class Found(NamedTuple):
    """What a model says of one question.

    Attributes:
      candidates: answers of different texts, the best first.
      none: no answer, in the window where that is least likely.
    """

    candidates: Sequence[Candidate]
    none: Candidate


class _Pairs(NamedTuple):
    """First and last tokens that may be answers, as columns; places are those of columns by token."""

    row: Ints
    first: Ints
    last: Ints
    score: npt.NDArray[np.float64]


def decode(logits: Floats, features: Features, contexts: Sequence[str], rules: Rules) -> list[Found]:
    """Returns what a model says of each question.

    As published, pairs are made of the tokens with the `n_best_size` highest logits of each row; an answer begins at a token in
    its widest window, ends in the context, and has `max_answer_length` pieces at most.

    Args:
      logits: [total, 2] by token: that an answer begins there, and that it ends.
      features: the rows.
      contexts: E texts.
      rules: which answers there may be.
    """
    if not contexts:
        return []
    starts = np.cumsum(features.lengths, dtype=np.int64) - features.lengths  # [N] place of [CLS]
    examples = np.arange(len(features)) if features.example_ids is None else features.example_ids.astype(np.int64)
    windows = np.arange(len(features)) - features.first_rows[examples]
    blocks = [np.arange(first, min(first + _BLOCK, len(starts))) for first in range(0, len(starts), _BLOCK)]
    pairs = _Pairs(*map(np.concatenate, zip(*(_pairs(logits, features, starts, rows, rules) for rows in blocks))))
    order = np.lexsort((pairs.last, pairs.first, -pairs.score, examples[pairs.row]))
    pairs = _Pairs(pairs.row[order], pairs.first[order], pairs.last[order], pairs.score[order])
    columns = (
        features.targets[spans.FIRST][pairs.first],
        features.targets[spans.AFTER][pairs.last],
        windows[pairs.row],
        logits[pairs.first, 0],
        logits[pairs.last, 1],
    )
    ends = np.searchsorted(examples[pairs.row], np.arange(len(contexts) + 1)).tolist()
    nones = _nones(logits[starts].astype(np.float64), examples, windows)
    return [
        Found(_distinct(zip(*(column[a:b].tolist() for column in columns)), context, rules.n_best_size), none)
        for context, none, a, b in zip(contexts, nones, ends, ends[1:])
    ]


def _pairs(logits: Floats, features: Features, starts: Ints, rows: Ints, rules: Rules) -> _Pairs:
    """Returns the pairs of a block of rows that may be answers.

    Args:
      logits: [total, 2].
      features: all rows.
      starts: [N] place of the first token of each row.
      rows: [R] their numbers.
      rules: which answers there may be.
    """
    lengths = features.lengths[rows]
    token = np.arange(lengths.max())
    real = token < lengths[:, None]  # [R, T]
    places = np.where(real, starts[rows][:, None] + token, 0)
    padded = np.where(real[:, :, None], logits[places], -np.inf)  # [R, T, 2]
    first, last = (_highest(padded[:, :, end], rules.n_best_size) for end in (0, 1))  # [R, n]
    first_places, last_places = np.take_along_axis(places, first, 1), np.take_along_axis(places, last, 1)
    may_begin = features.targets[spans.WIDEST][first_places] & np.take_along_axis(real, first, 1)
    may_end = (features.targets[spans.FIRST][last_places] >= 0) & np.take_along_axis(real, last, 1)
    pieces = last[:, None, :] - first[:, :, None]  # [R, n, n], one less than there are
    may_be = may_begin[:, :, None] & may_end[:, None, :] & (pieces >= 0) & (pieces < rules.max_answer_length)
    row, a, b = np.nonzero(may_be)
    begins, ends = first_places[row, a], last_places[row, b]
    return _Pairs(rows[row], begins, ends, logits[begins, 0].astype(np.float64) + logits[ends, 1])


def _highest(values: Floats, size: int) -> Ints:
    """Returns [R, n] where the highest of [R, T] values are, in no order."""
    if values.shape[1] <= size:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(-values, size - 1, axis=1)[:, :size]


def _nones(logits: npt.NDArray[np.float64], examples: Ints, windows: Ints) -> Iterator[Candidate]:
    """Yields for each question that it has no answer, by the [N, 2] logits of [CLS]."""
    order = np.lexsort((logits.sum(axis=1), examples))
    for row in order[np.flatnonzero(np.diff(examples[order], prepend=-1))].tolist():
        start_logit, end_logit = logits[row].tolist()
        yield Candidate("", None, None, int(windows[row]), start_logit, end_logit)


def _distinct(columns: Iterator[tuple[int, int, int, float, float]], context: str, most: int) -> list[Candidate]:
    """Returns the first candidates of different texts."""
    found: dict[str, Candidate] = {}
    for start, end, window, start_logit, end_logit in columns:
        whole = _with_marks(context, end)
        text = context[start:whole]
        if text not in found:
            found[text] = Candidate(text, start, whole, window, start_logit, end_logit)
            if len(found) == most:
                break
    return list(found.values())


def _with_marks(context: str, end: int) -> int:
    """Returns the end of an answer with the accents that follow, which belong to no word piece."""
    while end < len(context) and context[end] > _ASCII and unicodedata.category(context[end]) == "Mn":
        end += 1
    return end
