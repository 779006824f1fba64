"""Features of sentences and pairs, against examples worked out by hand and the published loop."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from bert_tf.features import sentences
from bert_tf.features.sentences import build, truncated_lengths
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

# [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "cat", "sat", "##s", "."])
TOKENIZER = WordPieceTokenizer(VOCABULARY)


def one(text_a: str, text_b: str | None = None, *, max_seq_length: int = 16):
    return build([(text_a, text_b)], [None], TOKENIZER, label_names=(), max_seq_length=max_seq_length)


def token_by_token(first: list, second: list, limit: int) -> tuple[list, list]:
    """The published rule: one token at a time from the longer one, from the second where they are equal."""
    first, second = list(first), list(second)
    while len(first) + len(second) > limit:
        longer = first if len(first) > len(second) else second
        longer.pop()
    return first, second


def test_examples_in_the_documentation_hold():
    result = doctest.testmod(sentences)
    assert result.attempted > 0
    assert result.failed == 0


def test_truncation_keeps_what_the_published_loop_keeps():
    first, second, limit = (x.ravel() for x in np.meshgrid(range(10), range(10), range(21), indexing="ij"))
    kept = truncated_lengths(first, second, limit)
    for a, b, most, kept_a, kept_b in zip(first, second, limit, *kept):
        published = token_by_token(list(range(a)), list(range(b)), most)
        assert (list(range(kept_a)), list(range(kept_b))) == tuple(map(list, published))


def test_pair_is_cls_a_sep_b_sep():
    assert one("The cats sat.", "cat").token_ids.tolist() == [2, 5, 6, 8, 7, 9, 3, 6, 3]


def test_single_text_is_cls_a_sep():
    assert one("The cat").token_ids.tolist() == [2, 5, 6, 3]


def test_unknown_word_is_unk():
    assert one("the dog").token_ids.tolist() == [2, 5, 1, 3]


def test_first_length_ends_after_the_first_sep():
    assert one("The cats sat.", "cat").first_lengths.tolist() == [7]


def test_single_text_is_all_first_segment():
    features = one("The cat")
    assert features.first_lengths.tolist() == features.lengths.tolist() == [4]


def test_empty_second_text_still_has_its_sep():
    # A pair of which the second text has no visible character is a pair.
    assert one("cat", "\u200b").token_ids.tolist() == [2, 6, 3, 3]


def test_padded_pair_worked_out_by_hand():
    batch = one("The cats", "sat.").batch(np.array([0]), 9)
    assert batch["input_ids"].tolist() == [[2, 5, 6, 8, 3, 7, 9, 3, 0]]
    assert batch["input_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 1, 0]]
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 0]]


def test_long_single_text_keeps_its_beginning_and_the_sep():
    assert one("the cat sat . . .", max_seq_length=5).token_ids.tolist() == [2, 5, 6, 7, 3]


def test_long_pair_loses_from_the_longer_text():
    assert one("the cat sat .", "cat", max_seq_length=6).token_ids.tolist() == [2, 5, 6, 3, 6, 3]


def test_long_pair_of_equals_loses_from_the_second():
    assert one("the cat", "cat sat", max_seq_length=6).token_ids.tolist() == [2, 5, 6, 3, 6, 3]


@pytest.mark.parametrize(("max_seq_length", "truncated"), [(6, 0), (5, 1)])
def test_truncated_single_texts_are_counted(max_seq_length, truncated):
    assert one("the cat sat .", max_seq_length=max_seq_length).truncated == truncated


@pytest.mark.parametrize(("max_seq_length", "truncated"), [(7, 0), (6, 1)])
def test_truncated_pairs_are_counted(max_seq_length, truncated):
    assert one("the cat", "sat .", max_seq_length=max_seq_length).truncated == truncated


def test_examples_follow_each_other_in_the_order_of_the_texts():
    features = build([("the", None), ("cat", "sat")], ["x", "x"], TOKENIZER, label_names=("x",), max_seq_length=8)
    assert features.token_ids.tolist() == [2, 5, 3, 2, 6, 3, 7, 3]
    assert features.lengths.tolist() == [3, 5]


def test_label_is_its_position_among_the_names():
    texts = [("the", None)] * 3
    features = build(texts, ["no", "yes", "no"], TOKENIZER, label_names=("yes", "no"), max_seq_length=8)
    assert features.label_ids.tolist() == [1, 0, 1]


def test_label_to_be_predicted_is_zero_as_in_the_published_script():
    assert one("the").label_ids.tolist() == [0]


def test_labels_must_be_as_many_as_texts():
    with pytest.raises(ValueError, match="columns of different lengths"):
        build([("the", None), ("cat", None)], ["x"], TOKENIZER, label_names=("x",), max_seq_length=8)


def test_no_texts_make_no_features():
    assert len(build([], [], TOKENIZER, label_names=("x",), max_seq_length=8)) == 0
