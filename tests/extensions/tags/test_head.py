"""The head of tags, by hand."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert_tf.config import BertConfig
from bert_tf.extensions.tags.head import TagHead
from bert_tf.modeling.encoder import Encoded, bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.modeling.packing import Packed
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

tf1 = tf.compat.v1

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
    probabilities = evaluate(lambda: TagHead(4).serving({"logits": tf.constant(TAG_LOGITS)})["probabilities"])
    assert probabilities.sum(axis=-1) == pytest.approx(1.0)
