"""Features of sentences and pairs, and what is kept of long texts: by hand, and beside the published loop."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.features import long_text
from bert_tf.features.long_text import CUTS
from bert_tf.features.sentences import build
from bert_tf.fields import Field
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training.settings import LONG_TEXTS

# [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "cat", "sat", "##s", "."])
TOKENIZER = WordPieceTokenizer(VOCABULARY)

LABEL = Field("label_ids")


def one(text_a, text_b=None, *, max_seq_length=16, **settings):
    return build([(text_a, text_b)], (LABEL, np.zeros(1, np.int32)), TOKENIZER, max_seq_length=max_seq_length, **settings)


def rows(features) -> list[list[int]]:
    return [part.tolist() for part in np.split(features.token_ids, np.cumsum(features.lengths))[:-1]]


@pytest.mark.parametrize(
    ("texts", "settings", "row", "first_length", "truncated"),
    [
        (("The cats sat.", "cat"), {}, [2, 5, 6, 8, 7, 9, 3, 6, 3], 7, 0),
        (("The cat",), {}, [2, 5, 6, 3], 4, 0),
        (("the dog",), {}, [2, 5, 1, 3], 4, 0),
        (("the cat sat . . .",), {"max_seq_length": 5}, [2, 5, 6, 7, 3], 5, 1),
        (("the cat sat .", "cat"), {"max_seq_length": 6}, [2, 5, 6, 3, 6, 3], 4, 1),  # the longer text loses
        (("the cat", "cat sat"), {"max_seq_length": 6}, [2, 5, 6, 3, 6, 3], 4, 1),  # of equals the second
        (("the cat sat .",), {"max_seq_length": 6}, [2, 5, 6, 7, 9, 3], 6, 0),
        (("the cat", "sat ."), {"max_seq_length": 7}, [2, 5, 6, 3, 7, 9, 3], 4, 0),
        (("the cat cats sat . .",), {"max_seq_length": 6, "long_text": "head_tail"}, [2, 5, 7, 9, 9, 3], 6, 1),
    ],
)
def test_rows_worked_out_by_hand(texts, settings, row, first_length, truncated):
    features = one(*texts, **settings)
    assert (rows(features), features.first_lengths.tolist(), features.truncated) == ([row], [first_length], truncated)
    assert features.example_ids is None


@pytest.mark.parametrize("long_text", CUTS)
@pytest.mark.parametrize("second", [None, "", " ", "\u200b"])
def test_a_second_text_without_pieces_is_none_as_published(second, long_text):
    assert one("cat", second, long_text=long_text).token_ids.tolist() == [2, 6, 3]
    cut = one("the cat sat .", second, max_seq_length=5, long_text=long_text)
    assert rows(cut) == rows(one("the cat sat .", max_seq_length=5, long_text=long_text))
    assert cut.truncated == (long_text != "windows")


@pytest.mark.parametrize("labels", [np.array([1, 0], np.int32), np.array([0.5, 4], np.float32), np.eye(2, 3, dtype=np.float32)])
def test_labels_of_any_kind_stay_with_their_texts(labels):
    features = build([("the", None), ("cat", None)], (LABEL, labels), TOKENIZER, max_seq_length=8)
    np.testing.assert_array_equal(features.targets["label_ids"], labels)
    assert features.targets["label_ids"].dtype == labels.dtype


@pytest.mark.parametrize("long_text", CUTS)
def test_texts_that_fit_are_the_same_however_long_ones_are_cut(long_text):
    texts = [("the cat sat", None), ("the cat", "sat ."), ("cat", "")]
    features = build(texts, (LABEL, np.arange(3, dtype=np.int32)), TOKENIZER, max_seq_length=7, long_text=long_text)
    assert rows(features) == [[2, 5, 6, 7, 3], [2, 5, 6, 3, 7, 9, 3], [2, 6, 3]]
    assert (features.truncated, features.targets["label_ids"].tolist()) == (0, [0, 1, 2])


def test_windows_of_a_long_text_are_rows_of_its_example_with_the_shorter_text_in_each():
    texts = [("the", None), ("the cat cats sat .", None), ("cat", None)]
    features = build(texts, (LABEL, np.array([1, 2, 0], np.int32)), TOKENIZER, max_seq_length=6, long_text="windows")
    assert rows(features) == [[2, 5, 3], [2, 5, 6, 6, 8, 3], [2, 6, 8, 7, 9, 3], [2, 6, 3]]
    assert features.example_ids.tolist() == [0, 1, 1, 2]
    assert features.targets["label_ids"].tolist() == [1, 2, 2, 0]
    assert features.truncated == 0
    features = one("the cat", "sat . sat the", max_seq_length=7, long_text="windows")
    assert rows(features) == [[2, 5, 6, 3, 7, 9, 3], [2, 5, 6, 3, 9, 7, 3], [2, 5, 6, 3, 7, 5, 3]]
    assert features.first_lengths.tolist() == [4, 4, 4]


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


def test_examples_in_the_documentation_hold_and_the_flag_knows_every_way():
    result = doctest.testmod(long_text)
    assert result.attempted > 0
    assert result.failed == 0
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
        numbers = [{number for row in of_example for number in row[text]} for text in (0, 1)]
        losing += numbers != [set(range(first)), set(range(second))]
    assert truncated == losing
