"""Heads over one vector per sequence and over all tokens, and what all heads share."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import base, registry
from bert_tf.modeling.heads import sentence as heads
from bert_tf.tasks.sentence import scores
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

tf1 = tf.compat.v1
CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_drops_the_pooled_vector_by_the_rate_of_the_configuration(rate):
    """Scores are compared with those of transformers in test_encoders_oracle.py."""
    recorder, weights = Recorder(factor=10.0), {"output_weights": [[1.0, 2.0]], "output_bias": [0.5]}

    def build():
        encoded = Encoded(tf.constant([[1.0, 1.0]]), None)
        config = dataclasses.replace(CONFIG, classifier_dropout_prob=rate)
        return heads.ClassificationHead(1).compute(encoded, {}, config, Execution(dropout=recorder))["logits"]

    assert (evaluate(build, weights).tolist(), recorder.rates) == ([[30.5]], [rate])


LOGITS = np.random.default_rng(0).normal(0, 2, [4, 3]).astype(np.float32)
CLASSES = np.array([0, 2, 1, 2])
HOT = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]], np.float32)
WEIGHTS = (0.5, 1.0, 3.0)


def test_the_loss_of_a_number_is_its_squared_error():
    losses = evaluate(lambda: heads.regression_loss(tf.constant([[2.5], [-1.0]]), tf.constant([4.0, -1.0])))
    np.testing.assert_array_equal(losses, [2.25, 0.0])


def cross_entropy(target):
    """[4], by the definition, of shares of the classes."""
    return -(target * special.log_softmax(LOGITS.astype(np.float64), axis=-1)).sum(axis=-1)


def binary_cross_entropy(target, factors=1.0):
    """[4], by the definition: factors are of the terms of labels that apply."""
    probabilities = special.expit(LOGITS.astype(np.float64))
    terms = -(factors * target * np.log(probabilities) + (1 - target) * np.log(1 - probabilities))
    return terms.mean(axis=-1)


ONE_HOT = np.eye(3)[CLASSES]


@pytest.mark.parametrize(
    ("loss_of", "labels", "options", "expected"),
    [
        (heads.classification_loss, CLASSES, {}, cross_entropy(ONE_HOT)),
        (heads.classification_loss, CLASSES, {"class_weights": WEIGHTS}, cross_entropy(ONE_HOT * WEIGHTS)),
        *(
            (heads.classification_loss, CLASSES, {"label_smoothing": s}, cross_entropy((1 - s) * ONE_HOT + s / 3))
            for s in (0.1, 1.0)
        ),
        (heads.multi_label_loss, HOT, {}, binary_cross_entropy(HOT)),
        (heads.multi_label_loss, HOT, {"class_weights": WEIGHTS}, binary_cross_entropy(HOT, np.array(WEIGHTS))),
        (heads.multi_label_loss, HOT, {"label_smoothing": 0.2}, binary_cross_entropy(np.where(HOT, 0.9, 0.1))),
    ],
)
def test_the_loss_of_classes_and_of_several_labels_has_weights_and_smoothing(loss_of, labels, options, expected):
    losses = evaluate(lambda: loss_of(tf.constant(LOGITS), tf.constant(labels), **options))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_a_part_of_the_mean_is_of_the_whole_batch():
    assert evaluate(lambda: base.part_of_mean(tf.constant([1.0, 2.0]), tf.constant(8))) == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("kind", "name", "shape"),
    [(CLASSIFICATION, "probabilities", (4, 3)), (MULTI_LABEL, "probabilities", (4, 3)), (REGRESSION, "scores", (4,))],
)
def test_clients_are_served_the_scores_that_predictions_have(kind, name, shape):
    given = LOGITS[:, :1] if kind == REGRESSION else LOGITS
    head = registry.make_head(HeadSpec(given.shape[1], kind))
    served = evaluate(lambda: head.serving({"logits": tf.constant(given)}))
    assert served.keys() == {name}
    np.testing.assert_allclose(served[name], scores.scores(kind, given).reshape(shape), rtol=1e-5)


def test_a_head_that_is_not_registered_is_one_line():
    with pytest.raises(FlagError, match="unknown kind of head 'tagz'; did you mean tags.*; register it"):
        registry.make_head(HeadSpec(2, "tagz"))
