"""What is kept of long texts, against the published loop and slow descriptions of the other ways."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.features import long_text
from bert_tf.features.long_text import CUTS
from bert_tf.training.settings import LONG_TEXTS

LENGTHS = st.integers(0, 40)
EXAMPLES = st.lists(st.tuples(LENGTHS, LENGTHS, st.integers(2, 20)), min_size=1, max_size=6)


def kept(name: str, examples: list[tuple[int, int, int]]) -> tuple[list[list[tuple[list[int], list[int]]]], int]:
    """Returns of each example the rows, a pair of lists of token numbers each, and how many examples are truncated."""
    cut = CUTS[name](*(np.array(column, np.int32) for column in zip(*examples)))
    rows = [[] for _ in examples]
    owners = range(len(examples)) if cut.example_ids is None else cut.example_ids
    for row, owner in enumerate(owners):
        texts = [[range(span.starts[row], span.starts[row] + span.lengths[row]) for span in spans] for spans in cut[:2]]
        rows[owner].append(tuple([number for piece in pieces for number in piece] for pieces in texts))
    return rows, cut.truncated


def token_by_token(first: int, second: int, limit: int) -> tuple[list[int], list[int]]:
    """The published rule: one token at a time from the longer one, from the second where they are equal."""
    a, b = list(range(first)), list(range(second))
    while len(a) + len(b) > limit:
        (a if len(a) > len(b) else b).pop()
    return a, b


def from_both_ends(length: int, count: int) -> list[int]:
    """A quarter, rounded up, from the beginning, the rest from the end."""
    tokens = list(range(length))
    head = -(-count // 4)
    return tokens if count == length else tokens[:head] + tokens[length - count + head :]


def sliding(first: int, second: int, limit: int) -> list[tuple[list[int], list[int]]]:
    """Windows over the longer text, one after the other until its end is reached."""
    if first + second <= limit:
        return [(list(range(first)), list(range(second)))]
    longer, other = max(first, second), min(min(first, second), limit // 2)
    size = min(longer, limit - other)
    starts = [0]
    while starts[-1] + size < longer:
        starts.append(min(starts[-1] + (size + 1) // 2, longer - size))
    rows = [(list(range(start, start + size)), list(range(other))) for start in starts]
    return rows if first > second else [row[::-1] for row in rows]


def test_examples_in_the_documentation_hold():
    result = doctest.testmod(long_text)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_flag_knows_every_way():
    assert tuple(CUTS) == LONG_TEXTS


@given(EXAMPLES)
def test_truncate_keeps_the_beginnings(examples):
    assert kept("truncate", examples)[0] == [[token_by_token(*example)] for example in examples]


@given(EXAMPLES)
def test_head_tail_keeps_as_much_from_both_ends(examples):
    published = [token_by_token(*example) for example in examples]
    expected = [
        [(from_both_ends(first, len(a)), from_both_ends(second, len(b)))]
        for (first, second, _), (a, b) in zip(examples, published)
    ]
    assert kept("head_tail", examples)[0] == expected


def test_head_tail_keeps_128_of_510_from_the_head():
    ((row,),), _ = kept("head_tail", [(1000, 0, 510)])
    assert row[0] == [*range(128), *range(1000 - 382, 1000)]


@given(EXAMPLES)
def test_windows_slide_over_the_longer_text(examples):
    assert kept("windows", examples)[0] == [sliding(*example) for example in examples]


@given(EXAMPLES)
@pytest.mark.parametrize("name", CUTS)
def test_truncated_are_the_examples_that_lose_tokens(name, examples):
    rows, truncated = kept(name, examples)
    losing = 0
    for (first, second, _), of_example in zip(examples, rows):
        found = [{number for row in of_example for number in row[text]} for text in (0, 1)]
        losing += found != [set(range(first)), set(range(second))]
    assert truncated == losing
