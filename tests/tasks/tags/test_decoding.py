"""Viterbi over legal transitions, beside all sequences of tags."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bert_tf.tasks.tags import schemes as decoding

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LEGAL = decoding.iob2(LABELS)


def is_legal(tags):
    return all(tag[0] != "I" or before in (f"B{tag[1:]}", tag) for before, tag in zip(("O", *tags), tags))


def best_of_all(scores):
    """Returns the best legal tags of one sentence, by trying each sequence."""
    legal = [tags for tags in itertools.product(range(5), repeat=len(scores)) if is_legal([LABELS[tag] for tag in tags])]
    return max(legal, key=lambda tags: scores[range(len(tags)), tags].sum())


def test_what_is_legal_in_iob2():
    assert LEGAL.first.tolist() == [True, True, False, True, False]
    assert LEGAL.after[:, 2].tolist() == [False, True, True, False, False]
    assert LEGAL.after[:, [0, 1, 3]].all()


def test_it_finds_what_trying_all_sequences_finds():
    lengths = np.array([3, 1, 0, 4, 2])
    scores = np.random.default_rng(0).normal(size=[lengths.sum(), 5])
    parts = np.split(scores, np.cumsum(lengths)[:-1])
    expected = [tag for part in parts for tag in (best_of_all(part) if len(part) else ())]
    assert decoding.viterbi(scores, lengths, LEGAL).tolist() == expected


def test_tags_that_are_legal_stay():
    scores = np.eye(5)[[1, 2, 0, 3]]
    assert decoding.viterbi(scores, np.array([4]), LEGAL).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("together", [1, 1 << 9, 1 << 21])
def test_it_never_leaves_illegal_tags(together, monkeypatch):
    monkeypatch.setattr(decoding, "_PAIRS", together)
    sentences = 300
    lengths = np.random.default_rng(1).integers(0, 9, sentences)
    scores = np.random.default_rng(2).normal(scale=9.0, size=[lengths.sum(), 5])
    found = decoding.viterbi(scores, lengths, LEGAL)
    assert not decoding.is_illegal(found, lengths, LEGAL).any()


def test_illegal_tags_are_those_that_follow_nothing_of_theirs():
    tags = np.array([2, 2, 1, 2, 4, 1, 2])  # I-PER I-PER | B-PER I-PER I-LOC | B-PER I-PER
    illegal = decoding.is_illegal(tags, np.array([2, 0, 3, 2, 0]), LEGAL)
    assert illegal.tolist() == [True, False, False, False, True, False, False]
