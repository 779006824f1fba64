import json

import numpy as np
import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.calibrate import rules

# Ten examples by falling probability; true ones are marked.
SHARES = np.array([0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
TRUE = np.array([1, 1, 0, 1, 1, 0, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("text", "predicted"),
    [
        ("f1", 5),  # 4 of 5 and 4 of 5: 0.8
        ("precision:0.75", 5),  # 4 of 5; of the first 6 it is 4 of 6
        ("precision:1", 2),
        ("recall:0.6", 4),  # 3 of 5
        ("recall:1", 8),
    ],
)
def test_thresholds_by_hand(text, predicted):
    threshold = rules.threshold(text, SHARES, TRUE)
    assert (threshold <= SHARES).sum() == predicted
    assert threshold == pytest.approx((SHARES[predicted - 1] + SHARES[predicted]) / 2)


@pytest.mark.parametrize(("positive", "negative", "predicted"), [(1, 1, 5), (10, 1, 2), (1, 10, 8), (1, 0, 0)])
def test_the_threshold_of_the_least_cost(tmp_path, positive, negative, predicted):
    path = tmp_path / "cost.json"
    path.write_text(json.dumps({"false_positive": positive, "false_negative": negative}))
    assert (rules.threshold(f"cost:{path}", SHARES, TRUE) <= SHARES).sum() == predicted


@pytest.mark.parametrize("highest", [0.95, 1.0 - 1e-9, 1.0])
def test_where_no_prediction_is_cheapest_none_is_made_in_float32_either(tmp_path, highest):
    path = tmp_path / "cost.json"
    path.write_text('{"false_positive": 1, "false_negative": 0}')
    threshold = rules.threshold(f"cost:{path}", SHARES * (highest / SHARES[0]), TRUE)
    assert np.float32(highest) < np.float32(threshold)


@pytest.mark.parametrize("rule", ["f1", "precision:0.9", "recall:0.9"])
def test_without_a_true_label_there_is_no_threshold(rule):
    assert rules.threshold(rule, SHARES, np.zeros(10, int)) is None


def test_equal_probabilities_are_decided_together():
    threshold = rules.threshold("precision:1", np.array([0.9, 0.9, 0.2]), np.array([1, 1, 0]))
    assert threshold == pytest.approx(0.55)
    with pytest.raises(FlagError, match="--threshold=precision:1: the best precision on the examples to fit on is 0.667"):
        rules.threshold("precision:1", np.array([0.9, 0.9, 0.9]), np.array([1, 1, 0]))


@pytest.mark.parametrize(("text", "decided"), [("coverage:0.3", 3), ("coverage:1", 10), ("risk:0.2", 5), ("risk:0", 2)])
def test_when_to_abstain_by_hand(text, decided):
    assert (rules.abstain_below(text, SHARES, TRUE > 0) <= SHARES).sum() == decided
    assert rules.abstain_below("below:0.7", SHARES, TRUE > 0) == 0.7


def test_sets_hold_the_true_class_of_new_examples_as_often_as_asked():
    """Mean over 400 draws of 100 examples to fit on, and 100 others; of few examples sets hold every class."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):
        logits = rng.normal(0, 2, (200, 4))
        labels = np.where(rng.random(200) < 0.5, logits.argmax(axis=-1), rng.integers(0, 4, 200))
        shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        start = rules.set_from(0.9, shares[:100], labels[:100])
        covered.append(np.mean(shares[100:][np.arange(100), labels[100:]] >= start))
    assert np.mean(covered) == pytest.approx(0.9 + 0.005, abs=0.01)
    assert rules.set_from(0.9, np.array([[0.9, 0.1]] * 8), np.zeros(8, int)) == 0.0


def test_the_rank_of_a_set_is_exact():
    shares = np.arange(199, 0, -1) / 200  # of the true class, falling
    start = rules.set_from(0.55, np.stack([shares, 1 - shares], axis=-1), np.zeros(199, int))
    assert (shares >= start).sum() == 110  # 0.55 of 200; one more in floating point


def test_the_risk_at_each_coverage():
    points = rules.risk_coverage(SHARES[:4], TRUE[:4] > 0)
    assert points == [(0.25, 0.0), (0.5, 0.0), (0.75, pytest.approx(1 / 3)), (1.0, 0.25)]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda: rules.threshold("best", SHARES, TRUE), "--threshold=best: write f1, precision:0.95"),
        (lambda: rules.threshold("recall", SHARES, TRUE), "--threshold=recall: write f1"),
        (lambda: rules.threshold("recall:2", SHARES, TRUE), "'2' is not a number between 0 and 1"),
        (lambda: rules.threshold("cost:nowhere.json", SHARES, TRUE), "cost:nowhere.json: cannot read the file"),
        (lambda: rules.abstain_below("often", SHARES, TRUE > 0), "--abstain=often: write coverage:0.9"),
        (lambda: rules.abstain_below("risk:0.1", SHARES[2:], TRUE[2:] > 0), "the lowest share of errors"),
        (lambda: rules.check(None, None, 1.5), "--sets=1.5: is a share between 0 and 1"),
    ],
)
def test_what_cannot_be_is_one_line(rule, message):
    with pytest.raises(FlagError) as refused:
        rule()
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"false_positive": 1}',
        *(f'{{"false_positive": {cost}, "false_negative": 1}}' for cost in ("-1", "Infinity", "1e400", '"5"', "true", "null")),
        '{"false_positive": 1, "false_negative": 1, "true_positive": 0}',
    ],
)
def test_a_file_of_costs_that_is_none_is_one_line(tmp_path, text):
    path = tmp_path / "cost.json"
    path.write_text(text)
    with pytest.raises(FlagError, match='expected {"false_positive": 1, "false_negative": 5}'):
        rules.threshold(f"cost:{path}", SHARES, TRUE)
