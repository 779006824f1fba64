"""From token logits to the best answers of each question, over all of its windows.

Shapes: E questions, N rows (windows), R rows of a block, T tokens of its longest row, n top logits per row.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.span import features as spans
from bert_tf.features.columns import Features
from bert_tf.tasks.predictions import Place

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_BLOCK = 256  # rows whose token pairs are scored together
_ASCII = "\x7f"


class Candidate(NamedTuple):
    """A candidate answer."""

    text: Annotated[str, {"description": "empty for no answer"}]  # as in the context
    start: Place  # first character in the context; None for no answer
    end: Place  # exclusive
    window: int  # number of its window, from 0
    start_logit: float  # of the first token; of [CLS] for no answer
    end_logit: float  # of the last token

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


class Rules(NamedTuple):
    """Decoding limits."""

    n_best_size: int  # answers per question, and logits considered per row
    max_answer_length: int  # word pieces


class Found(NamedTuple):
    """Decoded answers to one question."""

    candidates: Sequence[Candidate]  # with distinct texts, best first
    none: Candidate  # no answer, from the window where it is least likely


def decode(logits: Floats, features: Features, contexts: Sequence[str], rules: Rules) -> list[Found]:
    """Decodes logits [total, 2] (start and end per token) to the answers of E questions.

    As published, pairs combine the tokens with the `n_best_size` highest logits of each row; an answer begins at a
    token in its widest window, ends in the context, and has at most `max_answer_length` pieces.
    """
    if not contexts:
        return []
    starts = np.cumsum(features.lengths, dtype=np.int64) - features.lengths  # [N] place of [CLS]
    examples = np.arange(len(features)) if features.example_ids is None else features.example_ids.astype(np.int64)
    windows = np.arange(len(features)) - features.first_rows[examples]
    blocks = [np.arange(first, min(first + _BLOCK, len(starts))) for first in range(0, len(starts), _BLOCK)]
    pairs = zip(*(_pairs(logits, features, starts, rows, rules) for rows in blocks))
    row, first, last, score = map(np.concatenate, pairs)
    order = np.lexsort((last, first, -score, examples[row]))
    row, first, last = row[order], first[order], last[order]
    columns = (
        features.targets[spans.FIRST][first],
        features.targets[spans.AFTER][last],
        windows[row],
        logits[first, 0],
        logits[last, 1],
    )
    ends = np.searchsorted(examples[row], np.arange(len(contexts) + 1)).tolist()
    nones = _nones(logits[starts].astype(np.float64), examples, windows)
    return [
        Found(_distinct(zip(*(column[a:b].tolist() for column in columns)), context, rules.n_best_size), none)
        for context, none, a, b in zip(contexts, nones, ends, ends[1:])
    ]


def _pairs(
    logits: Floats, features: Features, starts: Ints, rows: Ints, rules: Rules
) -> tuple[Ints, Ints, Ints, npt.NDArray[np.float64]]:
    """Returns row, first and last token (of `logits`) and score of the possible answers of a block.

    logits [total, 2], starts [N] first tokens, rows [R] numbers.
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
    pieces = last[:, None, :] - first[:, :, None]  # [R, n, n], number of pieces minus 1
    may_be = may_begin[:, :, None] & may_end[:, None, :] & (pieces >= 0) & (pieces < rules.max_answer_length)
    row, a, b = np.nonzero(may_be)
    begins, ends = first_places[row, a], last_places[row, b]
    return rows[row], begins, ends, logits[begins, 0].astype(np.float64) + logits[ends, 1]


def _highest(values: Floats, size: int) -> Ints:
    """Returns [R, n] positions of the highest of [R, T] values, unordered."""
    if values.shape[1] <= size:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(-values, size - 1, axis=1)[:, :size]


def _nones(logits: npt.NDArray[np.float64], examples: Ints, windows: Ints) -> Iterator[Candidate]:
    """Yields the no-answer candidate of each question from the [N, 2] logits of [CLS]."""
    order = np.lexsort((logits.sum(axis=1), examples))
    for row in order[np.flatnonzero(np.diff(examples[order], prepend=-1))].tolist():
        start_logit, end_logit = logits[row].tolist()
        yield Candidate("", None, None, int(windows[row]), start_logit, end_logit)


def _distinct(columns: Iterator[tuple[int, int, int, float, float]], context: str, most: int) -> list[Candidate]:
    """Returns at most `most` candidates with distinct texts."""
    by_text: dict[str, Candidate] = {}
    for start, end, window, start_logit, end_logit in columns:
        whole = _with_marks(context, end)
        text = context[start:whole]
        if text not in by_text:
            by_text[text] = Candidate(text, start, whole, window, start_logit, end_logit)
            if len(by_text) == most:
                break
    return list(by_text.values())


def _with_marks(context: str, end: int) -> int:
    """Extends the end of an answer over combining accents, which are not part of any word piece."""
    while end < len(context) and context[end] > _ASCII and unicodedata.category(context[end]) == "Mn":
        end += 1
    return end
