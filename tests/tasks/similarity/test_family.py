from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from bert_tf.tasks.base import Limits
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.similarity import evaluation
from bert_tf.tasks.similarity.family import BELONG, ContrastiveFamily, SimilarityFamily
from tests.features.test_sentences import TOKENIZER

SCORED = SimilarityFamily(5.0)
PAIRS = ContrastiveFamily(temperature=0.5)
EXAMPLES = [SentenceExample(f"dev-{n}", "a", "b", label) for n, label in enumerate((5.0, 0.0, 2.0))]
TOGETHER = [SentenceExample(f"dev-{n}", f"a{n}", f"b{n}", BELONG) for n in range(3)]
VECTORS = np.array([[[1, 0], [2, 0]], [[1, 0], [0, 3]], [[1, 0], [3, 4]]], np.float32)  # cosines 1, 0 and 0.6


def test_the_vectors_of_a_text_in_windows_are_averaged():
    example = SentenceExample("dev-1", "the cat sat .", "cat", 1.0)
    features = SCORED.features([example], TOKENIZER, Limits(5, "windows"))
    outputs = {"vectors": np.array([[2, 0], [0, 4], [5, 5]], np.float32)}
    assert SCORED.predictions(outputs, features, [example]).tolist() == [[[1, 2], [5, 5]]]


def test_scores_are_scaled_to_cosines():
    features = SCORED.features(EXAMPLES, TOKENIZER, Limits(16))
    np.testing.assert_allclose(features.targets["scores"], [1, 1, 0, 0, 0.4, 0.4])


def test_metrics_are_correlations_of_cosines():
    found = SCORED.evaluation(VECTORS, EXAMPLES)
    cosines, scores = [1, 0, 0.6], [5, 0, 2]
    assert found.metrics["pearson"] == pytest.approx(pearsonr(cosines, scores)[0])
    assert found.metrics["spearman"] == pytest.approx(spearmanr(cosines, scores)[0])
    assert found.loss == pytest.approx(0.04 / 3)


def test_cosines_are_shown_by_score():
    (panel,) = SCORED.evaluation(VECTORS, EXAMPLES).panels
    assert [row[:2] for row in panel.rows] == [("0.0 to 0.2", 1), ("0.4 to 0.6", 1), ("0.8 to 1.0", 1)]
    assert panel.rows[1][2:] == pytest.approx((0.6, 0.0, 0.2))


def test_the_largest_errors_come_first():
    first, *_ = SCORED.mistakes(VECTORS, EXAMPLES)
    assert (first["id"], first["label"]) == ("dev-2", 2.0)
    assert (first["predicted"], first["error"]) == (pytest.approx(3.0), pytest.approx(1.0))


def test_a_contrastive_model_predicts_on_the_scale_of_its_training():
    record = {**ContrastiveFamily(5.0).record(), "highest_score": 5.0}  # as the record of a run has it
    assert ContrastiveFamily.from_record(record).listed(VECTORS[:1], EXAMPLES[:1])[0].label == pytest.approx(5.0)


def test_a_vector_without_length_has_no_cosine():
    assert SCORED.listed(np.zeros([1, 2, 2], np.float32), EXAMPLES[:1])[0].cosine == 0.0


def test_pairs_without_scores_are_measured_by_the_rank_of_the_second_text():
    first = [[1, 0], [0, 1], [1, 0]]
    second = [[1, 0], [0, 1], [0, -1]]  # of the third pair the first two are as near or nearer
    vectors = np.stack([np.array(first, np.float32), np.array(second, np.float32)], axis=1)
    found = PAIRS.evaluation(vectors, TOGETHER)
    assert found.metrics == {"mrr": pytest.approx((1 + 1 + 1 / 2) / 3), "accuracy_at_1": pytest.approx(2 / 3)}
    terms = [math.log(math.exp(2) + 2) - 2, math.log(math.exp(2) + 1 + math.exp(-2)) - 2, math.log(math.exp(2) + 2)]
    assert found.loss == pytest.approx(sum(terms) / 3)
    assert found.panels[0].rows == [("1", 2, pytest.approx(2 / 3)), ("2 to 3", 1, pytest.approx(1 / 3))]
    assert PAIRS.mistakes(vectors, TOGETHER) == [{"id": "dev-2", "text_a": "a2", "label": "b2", "predicted": "b0"}]


@pytest.mark.parametrize("block", [1, 7, 20])
def test_pairs_are_compared_with_all_others_whatever_is_computed_together(monkeypatch, block):
    vectors = np.random.default_rng(1).normal(size=[20, 2, 3]).astype(np.float32)
    examples = [SentenceExample(str(n), f"a{n}", f"b{n}", BELONG) for n in range(20)]
    whole, mistakes = PAIRS.evaluation(vectors, examples), PAIRS.mistakes(vectors, examples)
    monkeypatch.setattr(evaluation, "_AT_A_TIME", block)
    found = PAIRS.evaluation(vectors, examples)
    np.testing.assert_array_equal(found.ranks, whole.ranks)
    assert found.loss == pytest.approx(whole.loss)
    assert PAIRS.mistakes(vectors, examples) == mistakes


def test_vectors_that_are_all_the_same_have_learned_nothing():
    assert PAIRS.evaluation(np.ones([3, 2, 4], np.float32), TOGETHER).collapsed == "all texts have the same vector"
    assert PAIRS.evaluation(VECTORS, TOGETHER).collapsed is None


def test_an_interval_holds_the_mean_rank():
    random = np.random.default_rng(0)
    vectors = random.normal(size=[60, 2, 3]).astype(np.float32)
    examples = [SentenceExample(str(n), "a", "b", BELONG) for n in range(60)]
    found = PAIRS.evaluation(vectors, examples)
    for name, (low, high) in found.intervals.items():
        assert low < found.metrics[name] < high


def test_pairs_with_scores_are_measured_by_these_whatever_was_trained():
    assert set(PAIRS.evaluation(VECTORS, EXAMPLES).metrics) == {"spearman", "pearson"}


def test_the_scale_is_that_of_the_training():
    assert SimilarityFamily().as_trained(SCORED.record()) == SCORED
    assert ContrastiveFamily().as_trained(PAIRS.record()) == PAIRS
