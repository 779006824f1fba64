from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling.embeddings import embeddings
from bert_tf.modeling.layers import no_dropout
from tests.graphs import evaluate

# Two numbers a token; LayerNorm with a huge epsilon and its root as gamma does nothing but centre a row.
CONFIG = dataclasses.replace(
    BertConfig.tiny(), vocab_size=3, hidden_size=2, num_attention_heads=1, max_position_embeddings=4, layer_norm_eps=1e12
)
TABLES = {
    "embeddings/word_embeddings": [[0.0, 0.0], [1.0, -1.0], [2.0, -2.0]],
    "embeddings/token_type_embeddings": [[0.0, 0.0], [10.0, -10.0]],
    "embeddings/position_embeddings": [[0.0, 0.0], [100.0, -100.0], [200.0, -200.0], [300.0, -300.0]],
    "embeddings/LayerNorm/gamma": [1e6, 1e6],
}


def embed(input_ids, segment_ids, dropout=no_dropout):
    return evaluate(lambda: embeddings(tf.constant(input_ids), tf.constant(segment_ids), CONFIG, dropout=dropout), TABLES)


def test_adds_word_segment_and_position():
    rows = embed([[2, 1, 0]], [[0, 0, 1]])
    np.testing.assert_allclose(rows, [[2, -2], [101, -101], [210, -210]], rtol=1e-5)


def test_positions_begin_anew_in_each_sequence():
    rows = embed([[0, 0], [1, 1]], [[0, 0], [0, 0]])
    np.testing.assert_allclose(rows[:, 0], [0, 100, 1, 101], rtol=1e-5)


def test_drops_by_the_hidden_rate_after_normalizing():
    rates = []
    rows = embed([[1]], [[0]], dropout=lambda x, rate: rates.append(rate) or x * 2)
    assert rates == [CONFIG.hidden_dropout_prob]
    np.testing.assert_allclose(rows, [[2, -2]], rtol=1e-5)


def test_refuses_an_id_beyond_the_vocabulary():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        embed([[0, 3]], [[0, 0]])
