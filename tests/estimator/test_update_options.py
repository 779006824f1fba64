"""Micro-batches, parts that are frozen, and rates by schedule and by layer, in whole steps of training."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.estimator.model_fn import TRAIN, Model, make_model_fn
from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.estimator.update import BEFORE_SAVING, GRADIENT_NORM, LEARNING_RATE, Optimization
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.optimization.optimizers import AdamWConfig, moment_names
from bert_tf.optimization.parts import LayerDecay, part_of
from bert_tf.runtime.devices import session_config
from tests.estimator import wide
from tests.labelled import HEAD_VARIABLES, label_ids, labelled
from tests.tiny import random_weights

tf1 = tf.compat.v1
CONFIG = dataclasses.replace(wide.CONFIG, num_hidden_layers=2)
STEPS, BATCH = 6, 10
START = {**random_weights(CONFIG), "output_weights": np.random.default_rng(6).normal(0, 0.2, (2, 8)).astype(np.float32)}
DEFAULT = Execution()
IN_FULL = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)


class Trained(NamedTuple):
    losses: list[float]
    rates: list[float]
    norms: list[float]
    state: dict[str, np.ndarray]  # after the last step, with moments
    operations: set[str]


def build(data: Features, batch: int, *, config=CONFIG, execution=DEFAULT, dropout=False, **optimization):
    """Builds a step of training in the current graph."""
    settings = {"learning_rate": 0.003, "warmup_steps": 2, "total_steps": 2 * STEPS, "clip_norm": 0.05, **optimization}
    tf1.set_random_seed(1)
    pipeline = train_input_fn(data, Schedule(len(data), batch, 100), seed=4)()
    model = Model(config, HeadSpec(2), execution=execution, dropout=dropout, seed=1, optimization=Optimization(**settings))
    return make_model_fn(model)(tf1.data.make_one_shot_iterator(pipeline).get_next(), TRAIN)


@functools.cache
def train(*, steps=STEPS, config=CONFIG, **options) -> Trained:
    """Trains on batches of ten from the same weights; without dropout where it is not asked for."""
    with tf.Graph().as_default() as graph, tf1.Session(config=session_config()) as session:
        spec = build(wide.features(), BATCH, config=config, **options)
        initial = {variable.op.name: variable.initial_value for variable in tf1.trainable_variables()}
        assert initial.keys() == {*encoder_shapes(config), *HEAD_VARIABLES}
        starts = {initial[name]: value for name, value in START.items() if name in initial}
        session.run(tf1.global_variables_initializer(), starts)
        session.run(tf1.local_variables_initializer())
        fetches = [
            spec.loss,
            *(graph.get_tensor_by_name(f"{name}:0") for name in (LEARNING_RATE, GRADIENT_NORM)),
            spec.train_op,
        ]
        losses, rates, norms, _ = zip(*(session.run(fetches) for _ in range(steps)))
        session.run(tf1.get_collection(BEFORE_SAVING))
        state = session.run({variable.op.name: variable for variable in tf1.global_variables()})
        return Trained(losses, rates, norms, state, {operation.name for operation in graph.get_operations()})


def assert_same(actual: Trained, expected: Trained) -> None:
    """Compares losses and weights; no loss depends on the bias of keys, whose gradient is rounding."""
    np.testing.assert_allclose(actual.losses, expected.losses, atol=1e-6)
    np.testing.assert_allclose(actual.norms, expected.norms, rtol=1e-5)
    for name in START.keys() & expected.state.keys():
        if not name.endswith("key/bias"):
            np.testing.assert_allclose(actual.state[name], expected.state[name], rtol=0, atol=1e-6, err_msg=name)


def changed(trained: Trained) -> set[str]:
    return {name for name, start in START.items() if not np.array_equal(trained.state[name], start)}


@pytest.mark.parametrize(
    ("count", "options"),
    [
        (4, {}),  # ten examples: 2, 3, 2 and 3
        (3, {"execution": IN_FULL, "loss_scaling": True}),
        (2, {"execution": Execution(recompute=True)}),
    ],
    ids=["default", "published and scaled", "recomputed"],
)
def test_micro_batches_learn_what_the_whole_batch_learns(count, options):
    whole, parts = train(), train(micro_batches=count, **options)
    assert min(whole.norms) > 0.05  # so that clipping is active
    assert len(changed(whole)) == len(START)
    assert [name for name in whole.operations if "current_at" in name]  # updates that are put off
    assert_same(parts, whole)
    assert options or parts.state.keys() == whole.state.keys()


def test_micro_batches_drop_different_elements_and_the_seed_repeats_them():
    data = wide.features()
    end = int(data.lengths[0])
    same = labelled(
        np.tile(data.token_ids[:end], 2),
        *(np.tile(column[:1], 2) for column in (data.lengths, data.first_lengths, label_ids(data))),
    )

    def losses(batch: int, sessions: int) -> list[float]:
        with tf.Graph().as_default() as graph:
            spec = build(same, batch, config=wide.CONFIG, dropout=True, micro_batches=batch, defer_embeddings=False)
            starts = [tf1.global_variables_initializer(), tf1.local_variables_initializer()]
        losses_of_steps = []
        for _ in range(sessions):
            with tf1.Session(graph=graph) as session:
                session.run(starts)
                losses_of_steps.append(session.run(spec.loss))
        return losses_of_steps

    (alone,), (twice, again) = losses(1, 1), losses(2, 2)
    assert twice == again
    assert abs(twice - alone) > 1e-6  # of one and the same example, half of the loss


@pytest.mark.parametrize(
    ("frozen", "execution"),
    [({"pooler", 0}, DEFAULT), ({"embeddings", 0}, DEFAULT), ({"embeddings", 0}, Execution(recompute=True))],
    ids=["pooler", "embeddings", "embeddings, recomputed"],
)
def test_what_is_frozen_keeps_every_bit_and_no_gradient_is_computed_below_the_lowest_trained_part(frozen, execution):
    trained = train(frozen=frozenset(frozen), steps=3, execution=execution)
    kept = {name for name in START if part_of(name) in frozen}
    assert changed(trained) == START.keys() - kept
    assert not trained.state.keys() & {moment for name in kept for moment in moment_names(name)}
    if "embeddings" in frozen:
        assert not [name for name in trained.operations if "current_at" in name]  # nor is any update put off
        backward = {name.partition("bert/")[2] for name in trained.operations if name.startswith("gradients/")}
        assert {name for name in backward if name.startswith("encoder/layer_1/")}
        assert not {name for name in backward if name.startswith(("embeddings/", "encoder/layer_0/"))}


RATES = {"embeddings": 0.00125, 0: 0.0025, 1: 0.005, "pooler": 0.01, None: 0.01}


def test_the_first_update_of_each_part_has_the_size_of_its_rate():
    """With bias correction and without decay, the first update by Adam is the rate wherever a gradient is."""
    adamw = AdamWConfig(bias_correction=True, weight_decay=0.0, epsilon=1e-12)
    trained = train(steps=1, warmup_steps=0, layer_decay=LayerDecay(0.5, layers=2), learning_rate=0.01, adamw=adamw)
    for name in START.keys() - {name for name in START if name.endswith("key/bias")}:  # its gradient is rounding
        moved = np.abs(trained.state[name] - START[name])
        assert np.median(moved[moved > 0]) == pytest.approx(RATES[part_of(name)], rel=0.05), name
