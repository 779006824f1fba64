"""What the family adds to its parts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bert_tf.head_spec import HeadSpec
from bert_tf.tasks import families
from bert_tf.tasks.base import Limits
from bert_tf.tasks.span.family import SpanFamily
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


def test_a_family_is_made_again_from_its_record():
    family = SpanFamily(doc_stride=64, version_2_with_negative=True)
    assert families.of_record(family.record()) == family


def test_how_answers_are_chosen_makes_no_other_run():
    assert SpanFamily(n_best_size=3, max_answer_length=9, null_score_diff_threshold=-1.5).record() == SpanFamily().record()


def test_windows_and_rules_are_those_of_the_training():
    found = SpanFamily().as_trained({"doc_stride": 64, "n_best_size": 3, "version_2_with_negative": True})
    assert found == SpanFamily(doc_stride=64, n_best_size=3)


def test_has_two_logits_a_token():
    assert SpanFamily().head == HeadSpec(2, "span")


def test_an_answer_that_is_elsewhere_weighs_nothing():
    assert features(SpanFamily()).weights.tolist() == [1, 0, 1]


def test_loss_is_a_mean_over_the_windows_that_count():
    # [CLS] h [SEP] a b [SEP], three times; the answer of the first is the fifth token, of the third [CLS].
    logits = np.zeros([18, 2], np.float32)
    logits[4] = math.log(5)  # 5 of 10
    logits[6] = 100.0
    found = SpanFamily(version_2_with_negative=True).predictions({"span_logits": logits}, features(SpanFamily()), EXAMPLES)
    assert found.loss == pytest.approx((math.log(2) + math.log(6)) / 2)


def test_nothing_to_predict_is_no_error():
    found = SpanFamily().predictions({"span_logits": np.zeros([0, 2], np.float32)}, features(SpanFamily(), []), [])
    assert (found.each, found.loss) == ([], 0.0)


def test_predictions_are_answers_of_the_context():
    logits = np.zeros([6, 2], np.float32)
    logits[4] = 5.0
    (one,) = SpanFamily().predictions({"span_logits": logits}, features(SpanFamily(), EXAMPLES[:1]), EXAMPLES[:1]).each
    assert (one.id, one.label, one.start, one.end) == ("1", "b", 2, 3)


def test_files_hold_lines_and_what_is_published():
    logits = np.zeros([18, 2], np.float32)
    family = SpanFamily(version_2_with_negative=True)
    found = family.predictions({"span_logits": logits}, features(family), EXAMPLES)
    files = family.files(found, EXAMPLES, suffix="", published_suffix="")
    assert list(files) == ["predictions.jsonl", "predictions.json", "nbest_predictions.json", "null_odds.json"]
    assert files["predictions.jsonl"].count("\n") == 3
    assert {f"{name.partition('.')[0]}*.{name.partition('.')[2]}" for name in files} == set(family.file_patterns)
