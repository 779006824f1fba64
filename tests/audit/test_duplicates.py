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


def test_overlap_of_words_or_letters():
    assert duplicates.overlap("a b c d e f", "a b c d e x") == 5 / 7
    assert duplicates.overlap("one two three", "three one two") == 1.0
    assert duplicates.overlap("left", "lefts") == 3 / 6  # " le lef eft" of "ft " and "fts ts "


def test_near_duplicates_are_near_by_vectors_and_by_letters():
    found = rows(
        ("train", "the old man went home at six", "a"),
        ("train", "the old man went home at seven", "a"),
        ("train", "nothing of the kind", "b"),
        ("dev", "at six the old man went home", "a"),
    )
    near = duplicates.by_vectors(found, duplicates.keys(found), np.ones([4, 1]), 0.65)
    assert sorted((one.problem, one.row.name, one.other) for one in near) == [
        ("near_duplicate", "train:1", "train:0"),
        ("near_leak", "train:0", "dev:3"),
    ]
    apart = np.eye(4)
    assert list(duplicates.by_vectors(found, duplicates.keys(found), apart, 0.65)) == []


def test_a_row_unlike_the_others_is_an_outlier():
    vectors = np.random.default_rng(0).normal(size=(60, 8)) * 0.2 + np.eye(8)[0]
    vectors[20] = -np.eye(8)[0]
    found = rows(*(("train", f"{n:b} {n * n}", "a") for n in range(60)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = duplicates.by_vectors(found, duplicates.keys(found), vectors, 2.0)
    assert [(one.problem, one.row.name) for one in findings.in_order(near)][:1] == [("outlier", "train:20")]
