"""Exact match and F1, by hand and beside a second implementation."""

from __future__ import annotations

import doctest
import random

import numpy as np
import pytest

from bert_tf.tasks.span import evaluation as scores

ALPHABET = [
    "the",
    "The",
    "a",
    "An",
    "cat",
    "CAT",
    "cat's",
    "\u00e9t\u00e9",
    "\u00c9T\u00c9",
    "1,000",
    "(1000)",
    "-",
    "x-ray",
    "U.S.",
    "\u2019s",
    "\u00df",
    "theatre",
]


def score(predicted, *references, may_be_none=False):
    return tuple(scores.score(predicted, references, may_be_none=may_be_none))


def test_examples_in_the_documentation_hold():
    assert doctest.testmod(scores) == (0, 1)


@pytest.mark.parametrize(
    ("predicted", "reference", "expected"),
    [
        ("The Cat!", "cat", (1, 1)),
        ("x-ray", "xray", (1, 1)),
        ("theatre", "atre", (0, 0)),
        ("\u00c9t\u00e9", "\u00e9t\u00e9", (1, 1)),
        ("\u201ccat\u201d", "cat", (0, 0)),  # only ASCII's punctuation is taken off
        ("big cat", "cat", (0, 2 / 3)),
        ("cat cat dog", "cat cat", (0, 4 / 5)),
        ("cat cat", "cat", (0, 2 / 3)),
        ("", "cat", (0, 0)),
        ("the", "a", (1, 0)),  # as SQuAD 1.1 has it
    ],
)
def test_by_hand(predicted, reference, expected):
    assert score(predicted, reference) == pytest.approx(expected)


def test_the_best_reference_counts_for_each_score():
    assert score("black cat", "cat", "a black cat sat") == pytest.approx((0, 4 / 5))


@pytest.mark.parametrize(
    ("predicted", "references", "expected"),
    [("", (), (1, 1)), ("cat", (), (0, 0)), ("", ("cat",), (0, 0)), ("the", ("a",), (1, 1)), ("", ("the", "cat"), (0, 0))],
)
def test_no_answer_is_right_where_there_is_none(predicted, references, expected):
    assert score(predicted, *references, may_be_none=True) == expected


def second_words(text):
    """Deletes punctuation letter by letter, and articles word by word: no word here has one inside."""
    kept = "".join(c for c in text.lower() if not c.isascii() or c.isalnum() or c.isspace())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def second_score(predicted, references):
    best_exact, best_f1 = 0.0, 0.0
    for reference in references:
        left, right = second_words(predicted), second_words(reference)
        rest, same = list(right), 0
        for word in left:
            if word in rest:
                rest.remove(word)
                same += 1
        precision, recall = same / max(len(left), 1), same / max(len(right), 1)
        best_exact = max(best_exact, float(" ".join(left) == " ".join(right)))
        best_f1 = max(best_f1, 2 * precision * recall / (precision + recall) if same else 0.0)
    return best_exact, best_f1


def test_equal_to_a_second_implementation_on_a_thousand_perturbed_answers():
    chance = random.Random(4)
    for _ in range(1000):
        references = [" ".join(chance.choices(ALPHABET, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 3))]
        words = chance.choice(references).split()
        for _ in range(chance.randint(0, 3)):
            words[chance.randrange(len(words))] = chance.choice([*ALPHABET, chance.choice(words).upper(), ""])
        predicted = chance.choice([" ", "  ", "\t"]).join(words)
        assert score(predicted, *references) == pytest.approx(second_score(predicted, references)), (predicted, references)


def test_the_best_threshold_is_the_lowest_with_the_highest_mean():
    odds = np.array([-3.0, -1.0, 2.0, 5.0])
    answered = np.array([1.0, 0.5, 0.0, 1.0])
    unanswered = np.array([0.0, 0.0, 1.0, 0.0])
    # None answered 1/4, then 2/4, 2.5/4, 1.5/4, 2.5/4.
    assert scores.best_threshold(odds, answered, unanswered) == (2.5 / 4, -1.0)


def test_a_threshold_does_not_divide_equal_odds():
    odds = np.zeros(2)
    found = scores.best_threshold(odds, np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert found == (0.5, -1.0)
