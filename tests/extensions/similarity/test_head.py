"""Vectors of texts, trained in pairs: losses by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.extensions.similarity.head import contrastive_loss, cosine_loss
from bert_tf.head_spec import CONTRASTIVE, HeadSpec
from bert_tf.modeling.heads import registry
from tests.graphs import evaluate

pytestmark = pytest.mark.versions


def cosine(vectors, scores, sides, groups):
    return evaluate(lambda: cosine_loss(*map(tf.constant, (vectors, scores, sides, groups))))


def test_the_loss_of_a_pair_is_the_squared_error_of_its_cosine():
    vectors = [[2.0, 0.0], [3.0, 4.0], [0.0, 1.0], [0.0, 5.0]]  # cosines 0.6 and 1
    losses = cosine(vectors, [0.5, 0.5, 0.8, 0.8], [0, 1, 0, 1], [0, 0, 1, 1])
    np.testing.assert_allclose(losses, [0.005, 0.005, 0.02, 0.02], rtol=1e-4)


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
    head = registry.make_head(HeadSpec(1, CONTRASTIVE, (("temperature", 0.25),)))
    vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]

    def build():
        features = {"sides": tf.constant([0, 1, 0, 1]), "groups": tf.constant([0, 0, 1, 1])}
        return head.losses({"vectors": tf.constant(vectors)}, features, None)

    np.testing.assert_allclose(evaluate(build).sum(), 2 * math.log(1 + math.exp(-4)), rtol=1e-5)
