from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY, HeadSpec
from bert_tf.modeling.encoder import Encoded
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.similarity import contrastive_loss, cosine_loss
from tests.graphs import evaluate

CONFIG = BertConfig(vocab_size=1, hidden_size=2, num_attention_heads=1)


def test_vectors_are_means_of_real_tokens_and_need_no_variables():
    head = registry.of(HeadSpec(1, SIMILARITY))
    tokens = [[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]]]
    mask = {"input_mask": [[1, 1, 0]]}
    found = evaluate(lambda: head.compute(Encoded(tf.zeros([1, 2]), tf.constant(tokens)), mask, CONFIG, Execution()))
    assert found["vectors"].tolist() == [[2.0, 4.0]]
    assert head.variables(CONFIG) == {}


def cosine(vectors, scores, sides, groups):
    return evaluate(lambda: cosine_loss(*map(tf.constant, (vectors, scores, sides, groups))))


def test_the_loss_of_a_pair_is_the_squared_error_of_its_cosine():
    vectors = [[2.0, 0.0], [3.0, 4.0], [0.0, 1.0], [0.0, 5.0]]  # cosines 0.6 and 1
    found = cosine(vectors, [0.5, 0.5, 0.8, 0.8], [0, 1, 0, 1], [0, 0, 1, 1])
    np.testing.assert_allclose(found, [0.005, 0.005, 0.02, 0.02], rtol=1e-4)


def test_windows_of_a_text_are_averaged():
    whole = cosine([[1.0, 1.0], [1.0, 0.0]], [0.0, 0.0], [0, 1], [0, 0])
    cut = cosine([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]], [0.0] * 3, [0, 0, 1], [0, 0, 0])
    np.testing.assert_allclose(cut.sum(), whole.sum(), rtol=1e-6)


def test_a_text_is_told_from_those_of_the_other_pairs():
    vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]  # of the second pair no text is nearer than another

    def build():
        return contrastive_loss(tf.constant(vectors), tf.constant([0, 1, 0, 1]), tf.constant([0, 0, 1, 1]), temperature=0.5)

    np.testing.assert_allclose(evaluate(build), [math.log(2) / 2] * 4, rtol=1e-5)


def test_temperature_is_an_option_of_the_head():
    head = registry.of(HeadSpec(1, CONTRASTIVE, (("temperature", 0.25),)))
    vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]

    def build():
        features = {"sides": tf.constant([0, 1, 0, 1]), "groups": tf.constant([0, 0, 1, 1])}
        return head.losses({"vectors": tf.constant(vectors)}, features, None)

    np.testing.assert_allclose(evaluate(build).sum(), 2 * math.log(1 + math.exp(-4)), rtol=1e-5)
