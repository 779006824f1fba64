"""Vectors of tokens become those of texts."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.head_spec import VECTORS, HeadSpec
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.modeling.packing import Tokens
from tests.graphs import evaluate
from tests.tiny import random_weights

pytestmark = pytest.mark.versions

CONFIG = BertConfig.tiny(vocab_size=30)
NUMBERS = (0, -1)
PADDED = Execution(pack_tokens=False, last_layer_cls_only=False)


def batch():
    rng = np.random.default_rng(0)
    mask = (np.arange(6) < np.array([[6], [2], [4]])).astype(np.int32)
    return rng.integers(0, 30, mask.shape).astype(np.int32), mask, np.zeros_like(mask)


def outputs(execution, poolings, *, reads):
    """Returns what the head computes of two layers, by pooling."""
    features = dict(zip(("input_ids", "input_mask", "segment_ids"), batch()))

    def build():
        tensors = {name: tf.constant(value) for name, value in features.items()}
        encoded = bert(*tensors.values(), CONFIG, execution, reads=reads)
        made = {pooling: head(pooling) for pooling in poolings}
        return {str(name): one.compute(encoded, tensors, CONFIG, execution)["vectors"] for name, one in made.items()}

    return evaluate(build, random_weights(CONFIG))


def head(pooling):
    return heads.make_head(HeadSpec(len(NUMBERS) * CONFIG.hidden_size, VECTORS, (("layers", NUMBERS), ("pooling", pooling))))


@pytest.fixture(scope="module")
def layers():
    return evaluate(lambda: bert(*map(tf.constant, batch()), CONFIG, PADDED).layers, random_weights(CONFIG))


@pytest.mark.parametrize("execution", [PADDED, Execution()], ids=["padded", "packed"])
def test_layers_stand_side_by_side_however_they_are_computed(layers, execution):
    assert not head("cls").reads_tokens
    pooled = {**outputs(execution, ("mean", "max", None), reads=Tokens.ALL), **outputs(execution, ("cls",), reads=Tokens.FIRST)}
    real = batch()[1].astype(bool)
    of_texts = [np.concatenate([layers[number][row][real[row]] for number in NUMBERS], axis=1) for row in range(len(real))]
    np.testing.assert_allclose(pooled["mean"], [tokens.mean(axis=0) for tokens in of_texts], atol=1e-5)
    np.testing.assert_allclose(pooled["max"], [tokens.max(axis=0) for tokens in of_texts], atol=1e-5)
    np.testing.assert_allclose(pooled["cls"], [tokens[0] for tokens in of_texts], atol=1e-5)
    np.testing.assert_allclose(pooled["None"][real], np.concatenate(of_texts), atol=1e-5)


def test_vectors_have_no_variables_and_no_loss():
    head = heads.make_head(HeadSpec(8, VECTORS))
    assert head.variables(CONFIG) == {}
    with pytest.raises(ValueError, match="no loss"):
        head.losses({}, {}, LossOptions())
    assert head.serving({"vectors": 1}) == {"vectors": 1}
