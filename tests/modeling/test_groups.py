"""Losses of texts in several windows, by NumPy: of the mean of their logits, and spread over their rows."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import Groups, LossOptions
from tests.graphs import evaluate

GROUPS = np.array([0, 0, 0, 1, 2, 2], np.int32)
ROWS = np.array([3, 1, 2])  # of each text
RANDOM = np.random.default_rng(4)
LOGITS, TEACHER = (RANDOM.normal(0, 2, [6, 3]).astype(np.float32) for _ in range(2))
CLASSES, NUMBERS = np.array([2, 0, 1], np.int32), np.array([0.5, -1.0, 3.0], np.float32)
HOT = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]], np.float32)
T = 2.0  # temperature


def means(rows):
    """[G, ...] of each text, one after the other."""
    return np.stack([rows[text == GROUPS].astype(np.float64).mean(axis=0) for text in range(3)])


def of_classes(logits):
    loss = -special.log_softmax(logits, axis=-1)[np.arange(3), CLASSES]
    return loss, special.softmax(logits, axis=-1) - np.eye(3)[CLASSES]


def of_numbers(logits):
    return (logits[:, 0] - NUMBERS) ** 2, 2 * (logits - NUMBERS[:, None])


def of_labels(logits):
    probabilities = special.expit(logits)
    losses = -(HOT * np.log(probabilities) + (1 - HOT) * np.log(1 - probabilities))
    return losses.mean(axis=-1), (probabilities - HOT) / 3


CASES = {
    CLASSIFICATION: (HeadSpec(3), LOGITS, CLASSES, of_classes),
    REGRESSION: (HeadSpec(1, REGRESSION), LOGITS[:, :1], NUMBERS, of_numbers),
    MULTI_LABEL: (HeadSpec(3, MULTI_LABEL), LOGITS, HOT, of_labels),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_loss_of_a_text_is_that_of_the_mean_of_its_windows(kind):
    spec, logits, labels, expected = CASES[kind]

    def build():
        given = tf.constant(logits)
        features = {"groups": tf.constant(GROUPS), "label_ids": tf.constant(labels[GROUPS])}
        losses = registry.make_head(spec).losses({"logits": given}, features, LossOptions())
        return losses, tf.gradients(tf.reduce_sum(losses), [given])[0]

    losses, gradient = evaluate(build)
    by_text, slope = expected(means(logits))
    np.testing.assert_allclose(losses, (by_text / ROWS)[GROUPS], rtol=1e-5)
    np.testing.assert_allclose(gradient, (slope / ROWS[:, None])[GROUPS], rtol=1e-5, atol=1e-7)


def of_taught_classes(student, teacher):
    return T**2 * special.rel_entr(*(special.softmax(logits / T, axis=-1) for logits in (teacher, student))).sum(axis=-1)


def of_taught_labels(student, teacher):
    target = special.expit(teacher / T)
    return T**2 * -(target * special.log_expit(student / T) + (1 - target) * special.log_expit(-student / T)).mean(axis=-1)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (CLASSIFICATION, of_taught_classes),
        (REGRESSION, lambda student, teacher: ((student - teacher) ** 2)[:, 0]),
        (MULTI_LABEL, of_taught_labels),
    ],
)
def test_a_teacher_is_followed_in_the_mean_of_the_windows_too(kind, expected):
    spec, logits, _, _ = CASES[kind]
    teacher = TEACHER[:, : logits.shape[1]]

    def build():
        outputs = ({"logits": tf.constant(rows)} for rows in (logits, teacher))
        return registry.make_head(spec).soft_losses(*outputs, {"groups": tf.constant(GROUPS)}, T)

    by_text = expected(means(logits), means(teacher))
    np.testing.assert_allclose(evaluate(build), (by_text / ROWS)[GROUPS], rtol=1e-4)


def test_options_are_compared_by_the_mean_of_their_windows():
    """Two questions: options of two and one windows, then of one, two and one."""
    logits = RANDOM.normal(0, 2, 7).astype(np.float32)
    begins = [True, False, True, True, True, False, True]
    is_answer, questions = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [0, 0, 0, 1, 1, 1, 1]

    def build():
        given = tf.constant(logits)
        features = {"begins": tf.constant(begins), "is_answer": tf.constant(is_answer), "groups": tf.constant(questions)}
        losses = registry.make_head(HeadSpec(1, CHOICE)).losses({"logits": given}, features, LossOptions())
        return tf.math.segment_sum(losses, questions), tf.gradients(tf.reduce_sum(losses), [given])[0]

    scores = [[logits[:2].mean(), logits[2]], [logits[3], logits[4:6].mean(), logits[6]]]
    losses, gradient = evaluate(build)
    np.testing.assert_allclose(losses, [-special.log_softmax(of)[1] for of in scores], rtol=1e-5)
    first, second = ([*special.softmax(of)] for of in scores)
    of_options = [first[0] / 2, first[0] / 2, first[1] - 1, second[0], *[(second[1] - 1) / 2] * 2, second[2]]
    np.testing.assert_allclose(gradient, of_options, rtol=1e-4, atol=1e-6)


def test_without_groups_rows_are_texts():
    rows, values = Groups.of_examples({}), object()
    assert (rows.mean(values), rows.first(values), rows.spread(values)) == (values, values, values)
