"""The examples that a model gets most confidently wrong."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.head_spec import MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.tasks.sentence import evaluation as mistakes
from bert_tf.tasks.sentence.example import SentenceExample

EXAMPLES = [SentenceExample(f"dev-{number}", f"text {number}", label=None) for number in range(4)]
LOG_3, LOG_9 = np.log(3), np.log(9)


def found(head, names, logits, labels, dtype=np.int32, **settings):
    ids = np.array(labels, dtype)
    return mistakes.most_confident(head, names, EXAMPLES[: len(ids)], np.array(logits, np.float32), ids, **settings)


@pytest.fixture
def two_wrong():
    # Probabilities of "yes": 3/4, 9/10, 1/10, 1/4; the second and the fourth are right.
    logits = [[0, LOG_3], [0, LOG_9], [LOG_9, 0], [LOG_3, 0]]
    return lambda **settings: found(HeadSpec(2), ("no", "yes"), logits, [0, 1, 1, 0], **settings)


def test_wrong_ones_by_the_probability_of_the_decision(two_wrong):
    assert [(one.id, one.label, one.predicted) for one in two_wrong()] == [("dev-2", "yes", "no"), ("dev-0", "no", "yes")]
    assert [one.confidence for one in two_wrong()] == pytest.approx([0.9, 0.75])


def test_keeps_so_many(two_wrong):
    assert [one.id for one in two_wrong(kept=1)] == ["dev-2"]


def test_text_of_the_example(two_wrong):
    assert (two_wrong()[0].text_a, two_wrong()[0].text_b, two_wrong()[0].error) == ("text 2", None, None)


def test_equally_sure_ones_in_the_order_of_the_file():
    same = found(HeadSpec(2), ("no", "yes"), [[1, 0], [1, 0], [1, 0]], [1, 1, 1])
    assert [one.id for one in same] == ["dev-0", "dev-1", "dev-2"]


def test_nothing_wrong():
    assert found(HeadSpec(2), ("no", "yes"), [[1, 0]], [0]) == []


def test_numbers_by_their_distance():
    far = found(HeadSpec(1, REGRESSION), (), [[1.0], [2.0], [5.0]], [1.0, 4.5, 4.0], np.float32)
    assert [(one.id, one.label, one.predicted, one.error) for one in far] == [
        ("dev-1", 4.5, 2.0, -2.5),
        ("dev-2", 4.0, 5.0, 1.0),
    ]
    assert far[0].confidence is None


def test_several_labels_by_the_surest_wrong_one():
    # Probabilities of b: 3/4 where it does not apply, 1/10 where it does.
    logits = [[LOG_9, LOG_3], [LOG_9, -LOG_9]]
    wrong = found(HeadSpec(2, MULTI_LABEL), ("a", "b"), logits, [[1, 0], [1, 1]], np.float32)
    assert [(one.label, one.predicted) for one in wrong] == [(("a", "b"), ("a",)), (("a",), ("a", "b"))]
    assert [one.confidence for one in wrong] == pytest.approx([0.9, 0.75])
