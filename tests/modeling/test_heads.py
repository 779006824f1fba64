"""Heads over one vector per sequence and over all tokens, and what all heads share."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.modeling.encoder import Encoded, bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import base, registry
from bert_tf.modeling.heads import sentence as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.modeling.heads.tokens import TagHead
from bert_tf.modeling.packing import Packed
from bert_tf.tasks.sentence import scores
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

tf1 = tf.compat.v1
CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1)


def test_drops_the_pooled_vector_by_the_published_rate():
    """Scores are compared with those of transformers in test_encoders_oracle.py."""
    recorder, weights = Recorder(factor=10.0), {"output_weights": [[1.0, 2.0]], "output_bias": [0.5]}

    def build():
        encoded = Encoded(tf.constant([[1.0, 1.0]]), None)
        return heads.ClassificationHead(1).compute(encoded, {}, CONFIG, Execution(dropout=recorder))["logits"]

    assert (evaluate(build, weights).tolist(), recorder.rates) == ([[30.5]], [0.1])


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
    head = registry.of(HeadSpec(given.shape[1], kind))
    served = evaluate(lambda: head.serving({"logits": tf.constant(given)}))
    assert served.keys() == {name}
    np.testing.assert_allclose(served[name], scores.scores(kind, given).reshape(shape), rtol=1e-5)


def test_a_head_that_is_not_registered_is_one_line():
    with pytest.raises(FlagError, match="unknown kind of head 'tagz'; did you mean tags.*; register it"):
        registry.of(HeadSpec(2, "tagz"))


TAG_CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1, hidden_dropout_prob=0.3)
TAG_WEIGHTS = {"output_weights": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "output_bias": [0.0, 0.5, -1.0]}
TAG_MASK = [[1, 1, 1], [1, 0, 0]]
TAGGED_ROWS = np.array([[2.0, 3.0], [0.0, 1.0], [1.0, 1.0], [4.0, 0.0]], np.float32)  # of the tokens that are no padding
TAG_LOGITS = np.random.default_rng(0).normal(0, 2, [2, 3, 4]).astype(np.float32)
TAG_IDS = np.array([[-1, 2, 0], [3, -1, -1]])


def tag_logits(**execution):
    encoded = Encoded(None, None, rows=tf.constant(TAGGED_ROWS), layout=Packed(tf.constant(TAG_MASK)))
    return TagHead(3).compute(encoded, {}, TAG_CONFIG, Execution(**execution))["logits"]


def tag_loss(**options):
    def of_rows():
        return TagHead(4).losses({"logits": tf.constant(TAG_LOGITS)}, {"tag_ids": tf.constant(TAG_IDS)}, LossOptions(**options))

    return evaluate(of_rows)


def test_tokens_are_dropped_by_the_rate_of_the_configuration():
    recorder = Recorder(factor=10.0)
    assert evaluate(lambda: tag_logits(dropout=recorder), TAG_WEIGHTS)[0, 0].tolist() == [20.0, 30.5, 49.0]
    assert recorder.rates == [0.3]


def test_the_loss_of_a_row_is_a_sum_over_its_tags():
    log = special.log_softmax(TAG_LOGITS, axis=-1)
    np.testing.assert_allclose(tag_loss(), [-log[0, 1, 2] - log[0, 2, 0], -log[1, 0, 3]], rtol=1e-6)


def test_the_loss_of_a_tag_is_multiplied_by_its_weight():
    log = special.log_softmax(TAG_LOGITS, axis=-1)
    expected = [-3 * log[0, 1, 2] - log[0, 2, 0], -0.5 * log[1, 0, 3]]
    np.testing.assert_allclose(tag_loss(class_weights=(1.0, 1.0, 3.0, 0.5)), expected, rtol=1e-6)


def test_padding_is_not_computed():
    config = BertConfig.tiny(vocab_size=9)
    with tf.Graph().as_default() as graph:
        encoded = bert(*map(tf.constant, ([[1, 2, 3], [4, 0, 0]], TAG_MASK, [[0] * 3] * 2)), config, Execution())
        TagHead(5).compute(encoded, {}, config, Execution())
        products = [op for op in graph.get_operations() if op.type == "MatMul" and op.name.startswith("head")]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            assert [session.run(op.outputs[0]).shape for op in products] == [(4, 5)]


def test_a_client_gets_probabilities():
    found = evaluate(lambda: TagHead(4).serving({"logits": tf.constant(TAG_LOGITS)})["probabilities"])
    assert found.sum(axis=-1) == pytest.approx(1.0)
