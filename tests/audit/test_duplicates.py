"""Duplicates by normalized text, and near ones by shared words and letters."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.audit import duplicates, findings
from bert_tf.audit.findings import row_of
from bert_tf.tasks.sentence.example import SentenceExample


def rows(*given):
    """Rows of (split, text, label), named by their number."""
    return [
        row_of(split, SentenceExample(str(n), text, None, label), is_train=split == "train")
        for n, (split, text, label) in enumerate(given)
    ]


def exact(*given):
    found = rows(*given)
    return [(one.problem, one.row.name, one.other) for one in duplicates.exact(found, duplicates.keys(found))]


@pytest.mark.parametrize("text", ["He  left!", "HE LEFT", "\uff28e\u00a0left.", '"He left", ...'])
def test_case_punctuation_blanks_and_forms_do_not_count(text):
    assert duplicates.normalized(text) == "he left"


def test_texts_of_symbols_differ():
    assert duplicates.normalized(":-)") != duplicates.normalized(":-(")


def test_duplicates_contradictions_and_leaks():
    found = exact(
        ("train", "one", "a"), ("train", "One.", "a"), ("train", "one", "b"), ("train", "two", "a"), ("dev", "Two", "b")
    )
    assert found == [
        ("duplicate", "train:1", "train:0"),
        ("contradiction", "train:2", "train:0"),
        ("leak", "train:3", "dev:4"),
        ("contradiction", "dev:4", "train:3"),
    ]


def test_rows_to_predict_contradict_nothing():
    assert exact(("train", "one", "a"), ("test", "one", None)) == [("leak", "train:0", "test:1")]


def share(one, other):
    return [share for _, _, share in duplicates.similar([one, other], 0.01)]


def test_overlap_of_words_or_letters():
    assert share(("aa b c d e f", ""), ("aa b c d e x", "")) == [pytest.approx(5 / 7)]
    assert share(("one two three", ""), ("three one two", "")) == [1.0]
    assert share(("abcdefghijkl", ""), ("abcdefghijklm", "")) == [pytest.approx(11 / 14)]


def test_of_two_texts_the_one_that_shares_less_counts():
    assert share(("one two three", "abcdefghijkl"), ("one two three", "abcdefghijklm")) == [pytest.approx(11 / 14)]
    assert share(("one two three", ""), ("one two three", "left")) == []


def test_short_texts_share_all_or_nothing():
    assert share(("a thriller", "so dull a story"), ("no thriller", "so dull a story")) == []
    assert share(("a thriller", "so dull a story"), ("a thriller", "so dull a tale")) == [pytest.approx(3 / 5)]


def test_near_duplicates_are_leaks_across_splits():
    found = rows(
        ("train", "the old man went home at six", "a"),
        ("train", "the old man went home at seven", "a"),
        ("train", "nothing of the kind", "b"),
        ("dev", "at six the old man went home", "a"),
    )
    near = duplicates.near(found, duplicates.keys(found), 0.65)
    assert sorted((one.problem, one.row.name, one.other) for one in near) == [
        ("near_duplicate", "train:1", "train:0"),
        ("near_leak", "train:0", "dev:3"),
    ]


def test_pairs_are_the_same_in_blocks(monkeypatch):
    texts = [(f"row {n % 7} of {n % 5} texts", "") for n in range(30)]
    whole = list(duplicates.similar(texts, 0.5))
    monkeypatch.setattr(duplicates, "_BLOCK", 100)
    assert len(whole) > 30
    assert list(duplicates.similar(texts, 0.5)) == whole


def test_a_row_unlike_the_others_is_an_outlier():
    vectors = np.random.default_rng(0).normal(size=(60, 8)) * 0.2 + np.eye(8)[0]
    vectors[20] = -np.eye(8)[0]
    found = rows(*(("train", f"{n:b} {n * n}", "a") for n in range(60)))
    outliers = findings.ranked(duplicates.outliers(found, duplicates.keys(found), vectors))
    assert (outliers[0].problem, outliers[0].row.name) == ("outlier", "train:20")
