"""What is counted of a split."""

from __future__ import annotations

import pytest

from bert_tf.tasks.choice.reader import ChoiceExample
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.survey import survey


def words(text: str) -> int:
    return len(text.split())


def of_lengths(*lengths: int):
    """Surveys single sentences of so many tokens, [CLS] and [SEP] included."""
    return survey([SentenceExample("", "a " * (length - 2)) for length in lengths], words)


def test_lengths_include_cls_and_each_sep():
    found = survey([SentenceExample("", "a b"), SentenceExample("", "a b", "c"), SentenceExample("", "a b", " ")], words)
    assert (found.rows, found.lengths.tolist()) == (3, [4, 6, 4])


def test_what_fits_a_limit_exactly_is_not_truncated():
    found = of_lengths(63, 64, 65, 128, 129)
    assert [found.truncated(limit) for limit in (64, 128, 256)] == pytest.approx([0.6, 0.2, 0.0])


def test_bins_hold_what_fits_the_lengths_that_people_train_with():
    assert of_lengths(2, 16, 17, 64, 65, 512, 513, 900).histogram() == [
        *((1, 16, 2), (17, 32, 1), (33, 64, 1), (65, 128, 1)),
        *((257, 512, 1), (513, 900, 2)),
    ]


def test_labels_are_counted_by_name_and_numbers_kept():
    names = survey([SentenceExample("", "a", None, label) for label in ("x", ("y", "x"), (), None)], words)
    assert dict(names.labels) == {"x": 2, "y": 1}
    assert survey([SentenceExample("", "a", None, label) for label in (0.5, 2.0)], words).numbers.tolist() == [0.5, 2.0]


def test_examples_that_repeat_texts_are_named_and_those_that_contradict_the_first():
    rows = (("1", "a", "x"), ("2", "a", "x"), ("3", "a", "y"), ("4", "b", "y"), ("5", "a", "x"))
    found = survey([SentenceExample(guid, text, None, label) for guid, text, label in rows], words)
    assert (found.duplicates, found.contradictions) == (("2", "3", "5"), ("3",))


def test_the_order_of_several_labels_is_no_contradiction():
    labels = (("x", "y"), ("y", "x"), ("x",))
    found = survey([SentenceExample(str(n), "a", None, label) for n, label in enumerate(labels)], words)
    assert (found.duplicates, found.contradictions) == (("1", "2"), ("2",))


def test_ids_that_stand_there_again_are_named():
    assert survey([SentenceExample(guid, "a") for guid in "abcab"], words).repeated_ids == ("a", "b")


def test_examples_whose_texts_were_trained_on_are_named():
    train = survey([SentenceExample("train-1", "a", "b"), SentenceExample("train-2", "c")], words)
    dev = [SentenceExample("dev-1", "a", "b"), SentenceExample("dev-2", "b", "a"), SentenceExample("dev-3", "c")]
    assert survey(dev, words, train.texts).in_train == ("dev-1", "dev-3")


def test_an_example_with_several_rows_is_as_long_as_the_longest():
    found = survey([ChoiceExample("", "a b", "the _", ("c", "d e f"), 1), ChoiceExample("", "a", "", ("b", "c"), 1)], words)
    assert found.lengths.tolist() == [9, 5]
    assert found.labels == {"1": 2}
