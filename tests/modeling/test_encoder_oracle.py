"""The encoder beside an independent one: what transformers' PyTorch model made of the same weights and batch.

`write_encoder_oracle.py` wrote encoder_oracle.npz; the same comparison with real weights is tests/conformance's, and slow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.packing import Tokens
from tests.graphs import evaluate

tf1 = tf.compat.v1
ORACLE = dict(np.load(Path(__file__).with_name("encoder_oracle.npz")))
PUBLISHED = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)


def entries(prefix: str) -> dict[str, np.ndarray]:
    return {name[len(prefix) :]: values for name, values in ORACLE.items() if name.startswith(prefix)}


def config(activation: str) -> BertConfig:
    weights = entries("weight/bert/")
    vocabulary, hidden = weights["embeddings/word_embeddings"].shape
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=weights["encoder/layer_0/intermediate/dense/bias"].size,
        max_position_embeddings=len(weights["embeddings/position_embeddings"]),
        type_vocab_size=len(weights["embeddings/token_type_embeddings"]),
        hidden_act=activation,
    )


@pytest.fixture(scope="module", params=["gelu_erf", "gelu_tanh"])
def activation(request):
    return request.param


@pytest.fixture(scope="module", params=[PUBLISHED, Execution()], ids=["published", "packed"])
def found(request, activation):
    """Sequence, pooled, and the gradients by name where only the first token is read, as in training."""

    def build():
        inputs = [tf.constant(ORACLE[name].astype(np.int32)) for name in ("input_ids", "input_mask", "segment_ids")]
        whole = bert(*inputs, config(activation), request.param)
        with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
            pooled = bert(*inputs, config(activation), request.param, reads=Tokens.FIRST).pooled
        variables = tf1.trainable_variables()
        gradients = tf.gradients(pooled, variables, tf.constant(ORACLE["upstream"]))
        return whole.sequence, whole.pooled, {v.op.name: tf.convert_to_tensor(g) for v, g in zip(variables, gradients)}

    return evaluate(build, entries("weight/"))


def test_vectors(found, activation):
    sequence, pooled, _ = found
    real = ORACLE["input_mask"] == 1
    np.testing.assert_allclose(sequence[real], ORACLE[f"{activation}/sequence"][real], atol=2e-5)
    np.testing.assert_allclose(pooled, ORACLE[f"{activation}/pooled"], atol=1e-5)


def test_gradients(found, activation):
    expected = entries(f"{activation}/gradient/")
    assert found[2].keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[2][name], gradient, atol=1e-5, rtol=1e-4, err_msg=name)
