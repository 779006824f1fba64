from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling.embeddings import embeddings
from bert_tf.modeling.execution import Execution
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder

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


def embed(token_ids, segment_ids=None, positions=None, **options):
    """Returns the rows of some tokens, by default of segment 0 and at position 0."""
    execution = Execution(dropout=options.pop("dropout", Execution.dropout), dtype=options.pop("dtype", tf.float32))
    zeros = [0] * len(token_ids)
    inputs = (tf.constant(x, tf.int32) for x in (token_ids, segment_ids or zeros, positions or zeros))
    return embeddings(*inputs, CONFIG, execution, **options)


def test_adds_word_segment_and_position():
    rows = evaluate(lambda: embed([2, 1, 0], [0, 0, 1], [0, 1, 3]), TABLES)
    np.testing.assert_allclose(rows, [[2, -2], [101, -101], [310, -310]], rtol=1e-5)


def test_drops_by_the_hidden_rate_after_normalizing():
    recorder = Recorder(factor=2.0)
    rows = evaluate(lambda: embed([1], dropout=recorder), TABLES)
    assert recorder.rates == [CONFIG.hidden_dropout_prob]
    np.testing.assert_allclose(rows, [[2, -2]], rtol=1e-5)


def test_refuses_an_id_beyond_the_vocabulary():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        evaluate(lambda: embed([0, 3]), TABLES)


def test_words_are_read_by_the_given_lookup():
    seen = []

    def lookup(table, ids):
        seen.append((table.op.name, table.shape.as_list()))
        return tf.cast(ids, tf.float32)[:, None] * [[5.0, -5.0]]

    rows = evaluate(lambda: embed([2, 1], lookup=lookup), TABLES)
    assert seen == [("embeddings/word_embeddings", [3, 2])]
    np.testing.assert_allclose(rows, [[10, -10], [5, -5]], rtol=1e-5)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.float16])
def test_rows_have_the_type_of_activations_and_tables_stay_float32(dtype):
    with tf.Graph().as_default():
        assert embed([0], dtype=dtype).dtype == dtype
        assert {variable.dtype.base_dtype for variable in tf.compat.v1.global_variables()} == {tf.float32}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("word_embeddings", [[3, 0], [0, 0], [2, 4]]),
        ("token_type_embeddings", [[3, 0], [2, 4]]),
        ("position_embeddings", [[1, 0], [0, 0], [0, 0], [4, 4]]),
    ],
)
def test_the_gradient_of_a_table_adds_up_its_tokens(name, expected, monkeypatch):
    monkeypatch.setattr("bert_tf.modeling.layers.layer_norm", lambda rows, *_: rows)

    def build():
        rows = embed([0, 0, 2], [0, 0, 1], [0, 3, 3])
        table = next(v for v in tf.compat.v1.global_variables() if v.op.name.endswith(name))
        return tf.convert_to_tensor(tf.gradients(rows, table, [tf.constant([[1.0, 0], [2, 0], [2, 4]])])[0])

    np.testing.assert_array_equal(evaluate(build), expected)
