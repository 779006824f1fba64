"""What is switched for speed alone changes no loss."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.estimator.model_fn import TRAIN, Model, make_model_fn
from bert_tf.estimator.update import Optimization
from bert_tf.head_spec import HeadSpec
from bert_tf.inputs.pipeline import Batching, train_input_fn
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import sentence as heads
from bert_tf.optimization.adamw import AdamWConfig
from tests.estimator import wide
from tests.tiny import random_weights

tf1 = tf.compat.v1

LEVERS = ("pack_tokens", "last_layer_cls_only", "custom_gradients", "native", "fused", "defer_embeddings", "pad_to_longest")


def losses(*, off=(), bias_correction=False, config=wide.SURE):
    """The loss of every step from the same weights, with some levers off; by default without dropout."""
    on = {name: name not in off for name in LEVERS}
    execution = Execution(**{name: on[name] for name in ("pack_tokens", "last_layer_cls_only", "custom_gradients", "native")})
    adamw = AdamWConfig(bias_correction=bias_correction, fused=on["fused"], native=on["native"])
    optimization = Optimization(
        learning_rate=0.003,
        warmup_steps=3,
        total_steps=wide.SCHEDULE.steps,
        defer_embeddings=on["defer_embeddings"],
        adamw=adamw,
    )
    batching = Batching(pad_to=None if on["pad_to_longest"] else wide.LONGEST)
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(1)
        data = train_input_fn(wide.features(), wide.SCHEDULE, seed=4, batching=batching)()
        batch = tf1.data.make_one_shot_iterator(data).get_next()
        model = Model(config, HeadSpec(2), execution=execution, seed=1, optimization=optimization)
        spec = make_model_fn(model)(batch, TRAIN)
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())
        weights = {**random_weights(config), "output_weights": np.random.default_rng(6).normal(0, 0.2, (2, 8))}
        for variable in tf1.trainable_variables():
            if variable.op.name in weights:
                variable.load(weights[variable.op.name], session)
        return [session.run([spec.loss, spec.train_op])[0] for _ in range(wide.SCHEDULE.steps)]


@functools.cache
def published(bias_correction):
    """The losses with all levers off."""
    return losses(off=LEVERS, bias_correction=bias_correction)


@pytest.fixture(autouse=True, scope="module")
def _head_without_dropout():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heads, "_DROPOUT_RATE", 0.0)
        yield


# What an encoder computes in each of its ways is compared in tests/modeling/test_encoder.py.
OFF = [
    (),
    ("native",),
    ("native", "fused"),
    ("defer_embeddings",),
    ("native", "pack_tokens", "pad_to_longest"),
    ("last_layer_cls_only", "native", "custom_gradients"),
]
CASES = [*((off, False) for off in OFF), *((off, True) for off in OFF[:4])]


def in_words(value):
    if isinstance(value, bool):
        return "bias correction" if value else "published"
    return f"all but {' and '.join(value)}" if value else "all"


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("off", "bias_correction"), CASES, ids=in_words)
def test_levers_change_no_loss(off, bias_correction):
    expected = published(bias_correction)
    found = losses(off=off, bias_correction=bias_correction)
    assert max(expected) - min(expected) > 0.05  # there was something to learn
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_native_kernels_drop_the_same_elements(kernels):
    assert kernels.is_loaded()
    drops = dataclasses.replace(wide.SURE, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    expected, found = (losses(off=off, config=drops) for off in (("native",), ()))
    assert np.abs(np.array(expected) - losses()).max() > 0.01
    np.testing.assert_allclose(found, expected, rtol=1e-6)
