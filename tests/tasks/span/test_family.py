"""What the family adds to its parts."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest

from bert_tf.tasks.base import Limits
from bert_tf.tasks.span import predictions
from bert_tf.tasks.span.family import SpanFamily
from bert_tf.tasks.span.predictions import Prediction
from bert_tf.tasks.span.reader import Answer, SpanExample
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *"abcdefgh", "##s"]))
EXAMPLES = [
    SpanExample("1", "h", "a b", (Answer("b", 2),)),
    SpanExample("2", "h", "a b", (Answer("b", 0),)),
    SpanExample("3", "h", "a b", ()),
]


def features(family, examples=EXAMPLES):
    return family.features(examples, TOKENIZER, Limits(16))


def test_how_answers_are_chosen_makes_no_other_run():
    assert SpanFamily(n_best_size=3, max_answer_length=9, null_score_diff_threshold=-1.5).record() == SpanFamily().record()


def test_windows_and_rules_are_those_of_the_training():
    found = SpanFamily().as_trained({"doc_stride": 64, "n_best_size": 3, "version_2_with_negative": True})
    assert found == SpanFamily(doc_stride=64, n_best_size=3)


def test_an_answer_that_is_elsewhere_weighs_nothing():
    assert features(SpanFamily()).weights.tolist() == [1, 0, 1]


def test_loss_is_a_mean_over_the_windows_that_count():
    # [CLS] h [SEP] a b [SEP], three times; the answer of the first is the fifth token, of the third [CLS].
    logits = np.zeros([18, 2], np.float32)
    logits[4] = math.log(5)  # 5 of 10
    logits[6] = 100.0
    found = SpanFamily(version_2_with_negative=True).predictions({"span_logits": logits}, features(SpanFamily()), EXAMPLES)
    assert found.loss == pytest.approx((math.log(2) + math.log(6)) / 2)


def test_predictions_are_answers_of_the_context():
    logits = np.zeros([6, 2], np.float32)
    logits[4] = 5.0
    (one,) = SpanFamily().predictions({"span_logits": logits}, features(SpanFamily(), EXAMPLES[:1]), EXAMPLES[:1]).each
    assert (one.id, one.label, one.start, one.end) == ("1", "b", 2, 3)


@pytest.mark.parametrize(
    ("gold", "predicted", "marks"),
    [
        (None, None, []),
        ((2, 4), None, [(2, 4, "label")]),
        ((2, 4), (2, 4), [(2, 4, "both")]),
        ((2, 4), (6, 8), [(2, 4, "label"), (6, 8, "predicted")]),
        ((6, 8), (2, 4), [(2, 4, "predicted"), (6, 8, "label")]),
        ((2, 8), (4, 6), [(2, 4, "label"), (4, 6, "both"), (6, 8, "label")]),
        ((2, 4), (4, 6), [(2, 4, "label"), (4, 6, "predicted")]),
    ],
)
def test_places_of_two_answers(gold, predicted, marks):
    assert list(predictions.marks(gold, predicted)) == marks


def test_the_surest_mistake_comes_first_with_both_answers_marked():
    text = "the red fox ran"
    examples = [SpanExample(str(n), "who?", text, answers) for n, answers in enumerate(((Answer("red fox", 4),), (), ()))]
    found = [
        Prediction("0", "the red", 0.5, 0, 7, 0),
        Prediction("1", "fox", 0.9, 8, 11, 0),
        Prediction("2", "ran", 0.8, 12, 15, 0),
    ]
    first, second = predictions.most_confident(examples, found, [False, True, False])
    assert (first["id"], first["label"], first["marks"]) == ("2", ["no answer"], [(12, 15, "predicted")])
    assert second == {
        "id": "0",
        "text_a": text,
        "text_b": "who?",
        "label": ["red fox"],
        "predicted": "the red",
        "confidence": 0.5,
        "error": None,
        "marks": [(0, 4, "predicted"), (4, 7, "both"), (7, 11, "label")],
    }
    assert predictions.most_confident(examples, found, [False, True, False], kept=1) == [first]
    assert doctest.testmod(predictions) == (0, 1)
