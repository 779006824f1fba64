"""Pairs of texts: predictions, metrics and mistakes, by hand and other formulas."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from bert_tf.errors import DataError
from bert_tf.extensions.similarity import predictions as evaluation
from bert_tf.extensions.similarity.family import BELONG, ContrastiveFamily, SimilarityFamily, ZeroShotFamily
from bert_tf.tasks.base import Limits
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.features.test_sentences import TOKENIZER
from tests.tasks.refusals import refusal

SCORED, PAIRS = SimilarityFamily(5.0), ContrastiveFamily(temperature=0.5)
EXAMPLES = [SentenceExample(f"dev-{n}", "a", "b", label) for n, label in enumerate((5.0, 0.0, 2.0))]
VECTORS = np.array([[[1, 0], [2, 0]], [[1, 0], [0, 3]], [[1, 0], [3, 4]]], np.float32)  # cosines 1, 0 and 0.6


def together(count):
    return [SentenceExample(f"dev-{n}", f"a{n}", f"b{n}", BELONG) for n in range(count)]


def test_scores_are_scaled_as_in_the_training_and_vectors_of_windows_averaged():
    example = SentenceExample("dev-1", "the cat sat .", "cat", 1.0)
    features = SCORED.features([example], TOKENIZER, Limits(5, "windows"))
    outputs = {"vectors": np.array([[2, 0], [0, 4], [5, 5]], np.float32)}
    assert SCORED.predictions(outputs, features, [example]).tolist() == [[[1, 2], [5, 5]]]
    features = SCORED.features(EXAMPLES, TOKENIZER, Limits(16))
    np.testing.assert_allclose(features.targets["scores"], [1, 1, 0, 0, 0.4, 0.4])
    record = {**ContrastiveFamily(5.0).record(), "highest_score": 5.0}  # as the record of a run has it
    assert ContrastiveFamily.from_record(record).listed(VECTORS[:1], EXAMPLES[:1])[0].label == pytest.approx(5.0)
    assert SCORED.listed(np.zeros([1, 2, 2], np.float32), EXAMPLES[:1])[0].cosine == 0.0  # a vector without length
    assert SimilarityFamily().as_trained(SCORED.record()) == SCORED
    assert ContrastiveFamily().as_trained(PAIRS.record()) == PAIRS


def test_a_published_scale_is_that_of_the_labels_whatever_the_model_learned():
    family = get_task("STS-B-vectors").family.as_trained(SimilarityFamily(1.0).record())
    assert family.record() == SimilarityFamily(1.0).record()  # as the model's, which it fits
    assert family.evaluation(VECTORS, EXAMPLES).loss == pytest.approx(0.04 / 3)
    assert family.mistakes(VECTORS, EXAMPLES)[0]["predicted"] == pytest.approx(3.0)
    np.testing.assert_allclose(family.features(EXAMPLES, TOKENIZER, Limits(16)).targets["scores"], [1, 1, 0, 0, 0.4, 0.4])


@pytest.mark.parametrize("family", [SCORED, ContrastiveFamily(5.0)])
def test_pairs_with_scores_are_measured_by_the_correlation_of_cosines(family):
    result = family.evaluation(VECTORS, EXAMPLES)
    cosines, scores = [1, 0, 0.6], [5, 0, 2]
    assert result.metrics == pytest.approx({"pearson": pearsonr(cosines, scores)[0], "spearman": spearmanr(cosines, scores)[0]})
    assert result.loss == pytest.approx(0.04 / 3)
    (panel,) = result.panels
    assert [row[:2] for row in panel.rows] == [("0.0 to 0.2", 1), ("0.4 to 0.6", 1), ("0.8 to 1.0", 1)]
    assert panel.rows[1][2:] == pytest.approx((0.6, 0.0, 0.2))
    first, *_ = family.mistakes(VECTORS, EXAMPLES)
    assert (first["id"], first["label"]) == ("dev-2", 2.0)
    assert (first["predicted"], first["error"]) == pytest.approx((3.0, 1.0))


@pytest.mark.parametrize(
    ("second", "score", "problem"),
    [
        (None, 1.0, "one text, but pairs are compared: name the second with --text_b"),
        ("b", -0.5, "the score -0.5 is below 0; shift all scores, so that 0 is the lowest"),
        ("b", 6.0, "the score 6 is above 5; name the highest of the scale with --highest_score, as 5"),
    ],
)
def test_what_is_compared_without_training_is_refused_as_in_training(second, score, problem):
    examples = [SentenceExample("dev-1", "a", "b", 1.0), SentenceExample("dev-2", "a", second, score)]
    assert refusal(DataError, ZeroShotFamily(5.0).features, examples, TOKENIZER, Limits(16)) == f"dev-2: {problem}"


def test_pairs_without_scores_are_measured_by_the_rank_of_the_second_text():
    # Of the third pair the first second text is nearer, and the second as near, which also comes first.
    vectors = np.float32([[[1, 0], [1, 0]], [[0, 1], [0, 1]], [[1, 0], [0, -1]]])
    result = PAIRS.evaluation(vectors, together(3))
    assert result.metrics == {"mrr": pytest.approx((1 + 1 + 1 / 3) / 3), "accuracy_at_1": pytest.approx(2 / 3)}
    terms = [math.log(math.exp(2) + 2) - 2, math.log(math.exp(2) + 1 + math.exp(-2)) - 2, math.log(math.exp(2) + 2)]
    assert result.loss == pytest.approx(sum(terms) / 3)
    assert result.panels[0].rows == [("1", 2, pytest.approx(2 / 3)), ("2 to 3", 1, pytest.approx(1 / 3))]
    assert PAIRS.mistakes(vectors, together(3)) == [{"id": "dev-2", "text_a": "a2", "label": "b2", "predicted": "b0"}]
    assert result.collapsed is None
    collapsed = PAIRS.evaluation(np.ones([3, 2, 4], np.float32), together(3))
    assert (collapsed.collapsed, collapsed.metrics["mrr"]) == ("all texts have the same vector", pytest.approx(1 / 3))
    repeated = [dataclasses.replace(example, text_b="b") for example in together(3)]
    assert PAIRS.evaluation(np.ones([3, 2, 4], np.float32), repeated).metrics["mrr"] == 1.0  # the same text is no other one


def test_a_second_text_of_several_pairs_is_one_text_whose_vectors_differ_by_rounding():
    vectors = np.float32([[[1, 0], [1, 0.1]], [[1, 0], [1, 0]], [[0, 1], [0, 1]]])
    examples = [dataclasses.replace(example, text_b=text) for example, text in zip(together(3), "bbc")]
    result = PAIRS.evaluation(vectors, examples)
    assert result.metrics == {"mrr": 1.0, "accuracy_at_1": 1.0}
    assert result.panels[0].title == "Rank of the second text among 2"
    assert PAIRS.mistakes(vectors, examples) == []
    near, c = 2 / math.sqrt(1.01), 2 * 0.1 / math.sqrt(1.01)
    terms = [*[math.log(math.exp(near) + 1) - near] * 2, math.log(math.exp(2) + math.exp(c)) - 2]
    assert result.loss == pytest.approx(sum(terms) / 3)


def test_other_right_texts_of_a_first_text_are_no_wrong_ones():
    """The texts of the first two pairs belong to one text, and are nearer to it than that of the third pair."""
    vectors = np.float32([[[1, 0], [1, 0.1]], [[1, 0], [1, 0]], [[0, 1], [0, 1]]])
    examples = [dataclasses.replace(example, text_a=text) for example, text in zip(together(3), "aac")]
    result = PAIRS.evaluation(vectors, examples)
    assert result.metrics == {"mrr": 1.0, "accuracy_at_1": 1.0}
    assert PAIRS.mistakes(vectors, examples) == []
    near, c = 2 / math.sqrt(1.01), 2 * 0.1 / math.sqrt(1.01)
    terms = [math.log(math.exp(near) + 1) - near, math.log(math.exp(2) + 1) - 2, math.log(math.exp(2) + math.exp(c) + 1) - 2]
    assert result.loss == pytest.approx(sum(terms) / 3)
    assert PAIRS.evaluation(vectors[:2], examples[:2]).loss == pytest.approx(0.0)  # there is no wrong one


@pytest.mark.parametrize("block", [1, 7, 60])
def test_pairs_are_compared_with_all_others_whatever_is_computed_together(monkeypatch, block):
    vectors, examples = np.random.default_rng(0).normal(size=[60, 2, 3]).astype(np.float32), together(60)
    whole, mistakes = PAIRS.evaluation(vectors, examples), PAIRS.mistakes(vectors, examples)
    monkeypatch.setattr(evaluation, "_AT_A_TIME", block)
    result = PAIRS.evaluation(vectors, examples)
    assert result.panels == whole.panels
    assert result.loss == pytest.approx(whole.loss)
    assert PAIRS.mistakes(vectors, examples) == mistakes
    assert all(low < result.metrics[name] < high for name, (low, high) in result.intervals.items())
