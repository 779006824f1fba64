"""What is counted of the rows of a split."""

import pytest

from bert_tf.extensions.choice.reader import ChoiceExample
from bert_tf.extensions.data.survey import survey
from bert_tf.tasks.sentence.rows import SentenceExample

words = str.split


def test_lengths_include_cls_and_each_sep_of_the_longest_row_and_texts_that_were_trained_on_are_named():
    surveyed = survey([SentenceExample("", "a b"), SentenceExample("", "a b", "c"), SentenceExample("", "a b", " ")], words)
    assert (surveyed.rows, surveyed.lengths.tolist()) == (3, [4, 6, 4])
    surveyed = survey([SentenceExample("", "a b"), SentenceExample("", "a b", "c")], words, separators=2)
    assert surveyed.lengths.tolist() == [4, 7]
    surveyed = survey([SentenceExample("", "a " * (length - 2)) for length in (2, 16, 17, 64, 65, 512, 513, 900)], words)
    assert [surveyed.truncated(limit) for limit in (64, 65, 900)] == [4 / 8, 3 / 8, 0]
    assert surveyed.histogram() == [*((1, 16, 2), (17, 32, 1), (33, 64, 1), (65, 128, 1), (257, 512, 1), (513, 900, 2))]
    surveyed = survey([ChoiceExample("", "a b", "the _", ("c", "d e f"), 1), ChoiceExample("", "a", "", ("b", "c"), 1)], words)
    assert surveyed.lengths.tolist() == [9, 5]
    assert surveyed.labels == {"1": 2}
    train = survey([SentenceExample("train-1", "a", "b"), SentenceExample("train-2", "c")], words)
    dev = [SentenceExample("dev-1", "a", "b"), SentenceExample("dev-2", "b", "a"), SentenceExample("dev-3", "c")]
    assert survey(dev, words, train.texts).in_train == ("dev-1", "dev-3")


@pytest.mark.parametrize(
    ("rows", "labels", "numbers", "duplicates", "contradictions"),
    [
        ([("a", "x"), ("a", "x"), ("a", "y"), ("b", "y"), ("a", "x")], {"x": 3, "y": 2}, [], "124", "2"),
        ([("a", ("x", "y")), ("a", ("y", "x")), ("a", ("x",)), ("b", ())], {"x": 3, "y": 2}, [], "12", "2"),  # in any order
        ([("a", 0.5), ("b", 2.0), ("c", None)], {}, [0.5, 2.0], "", ""),
    ],
)
def test_labels_are_counted_and_texts_that_repeat_or_contradict_named(rows, labels, numbers, duplicates, contradictions):
    surveyed = survey([SentenceExample(str(n), text, None, label) for n, (text, label) in enumerate(rows)], words)
    assert (dict(surveyed.labels), surveyed.numbers.tolist()) == (labels, numbers)
    assert (surveyed.duplicates, surveyed.contradictions) == (tuple(duplicates), tuple(contradictions))
    assert survey([SentenceExample(guid, "a") for guid in "abcab"], words).repeated_ids == ("a", "b")
