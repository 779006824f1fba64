import dataclasses
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.estimator import model_fn, pipeline
from bert_tf.estimator.model_fn import PREDICT, TRAIN, Model, make_model_fn
from bert_tf.estimator.update import Optimization, Update
from bert_tf.fields import GLOBAL_WEIGHT
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION, HeadSpec
from bert_tf.modeling.heads import sentence as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.optimization.averaging import MovingAverage
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.optimization.parts import part_of
from bert_tf.tasks.sentence import scores
from tests.estimator import toy
from tests.graphs import evaluate

tf1 = tf.compat.v1

TWO_CLASSES = HeadSpec(2)
NATIVE = AdamWConfig(native=True)
# Of each kind, a head and the labels of eight examples.
KINDS = {
    CLASSIFICATION: (HeadSpec(3), np.array([0, 1, 2, 0, 1, 2, 0, 1], np.int32)),
    REGRESSION: (HeadSpec(1, REGRESSION), np.linspace(0, 5, 8, dtype=np.float32)),
    MULTI_LABEL: (HeadSpec(3, MULTI_LABEL), (np.arange(24).reshape(8, 3) % 2).astype(np.float32)),
}


def build(mode, *, head=TWO_CLASSES, label_ids=None, with_labels=True, **model):
    """Builds the graph of a mode in the current graph; `label_ids` take the place of the toy's."""
    optimization = Optimization(learning_rate=0.01, warmup_steps=0, total_steps=10)
    settings = {"seed": 1, "optimization": optimization, **model}
    batch = {name: tf.constant(value) for name, value in toy.features(8).batch(np.arange(8), 12).items()}
    batch |= {pipeline.ROWS: tf.range(8), GLOBAL_WEIGHT: tf.constant(8), pipeline.GLOBAL_TOKENS: tf.constant(72)}
    batch[pipeline.READY] = tf.constant(0.0, tf.float64)
    if label_ids is not None:
        batch["label_ids"] = tf.constant(label_ids)
    if not with_labels:
        del batch["label_ids"]
    tf1.train.get_or_create_global_step()
    tf1.set_random_seed(1)
    return make_model_fn(Model(toy.CONFIG, head, **settings))(batch, mode)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def _without_update(monkeypatch):
    """Makes no gradients, where the loss alone is looked at."""
    monkeypatch.setattr(Update, "minimize", lambda _, loss_of, features: (loss_of(features, 0), tf.no_op()))


def session():
    """A session with initialized variables, those of metrics too."""
    opened = tf1.Session()
    opened.run(tf1.global_variables_initializer())
    opened.run(tf1.local_variables_initializer())
    return opened


def values_at(tensor, *steps):
    """What is computed with the same weights at some steps, as bytes."""
    step, values = tf1.train.get_global_step(), []
    with session() as opened:
        for number in steps:
            opened.run(step.assign(number))
            values.append(opened.run(tensor).tobytes())
    return values


def test_training_needs_to_know_how_to_update():
    with pytest.raises(ValueError, match="a model without `optimization` cannot be trained"):
        build(TRAIN, optimization=None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_mean_of_what_the_kind_of_label_asks_for(graph, kind, request):
    if kind != CLASSIFICATION:
        request.getfixturevalue("_without_update")
    head, label_ids = KINDS[kind]
    spec = build(TRAIN, head=head, label_ids=label_ids, dropout=False)
    with session() as opened:
        loss, logits = opened.run([spec.loss, graph.get_tensor_by_name("head/BiasAdd:0")])
    assert loss == pytest.approx(scores.losses(kind, logits, label_ids).mean(), rel=1e-5)


@pytest.mark.usefixtures("_without_update")
@pytest.mark.parametrize("loss_of", [heads.classification_loss, heads.multi_label_loss])
def test_the_loss_has_weights_and_smoothing(graph, loss_of):
    options = LossOptions(class_weights=(1.0, 2.0, 3.0), label_smoothing=0.2)
    head, label_ids = KINDS[CLASSIFICATION if loss_of is heads.classification_loss else MULTI_LABEL]
    spec = build(TRAIN, head=head, label_ids=label_ids, dropout=False, loss=options)
    with session() as opened:
        tf1.trainable_variables()[-1].load([1.0, -2.0, 0.5], opened)
        loss, logits = opened.run([spec.loss, graph.get_tensor_by_name("head/BiasAdd:0")])
    assert loss == pytest.approx(evaluate(lambda: loss_of(logits, label_ids, **dataclasses.asdict(options))).mean(), rel=1e-5)


@pytest.mark.parametrize(
    "optimization",
    [
        {},
        {"adamw": AdamWConfig(fused=False), "average": MovingAverage(0.9)},
        {"adamw": NATIVE},
        {"optimizer": "lamb", "micro_batches": 2},
        {"loss_scaling": True},  # which another scale would not mend
        {"frozen": frozenset(part_of(name) for name in encoder_shapes(toy.CONFIG))},
    ],
    ids=["fused", "operation by operation", "native", "LAMB", "loss scaling", "head alone"],
)
def test_an_update_with_a_loss_that_is_no_number_changes_no_weight(optimization, request):
    if optimization.get("adamw") is NATIVE:
        request.getfixturevalue("kernels")
    spec = build(TRAIN, optimization=Optimization(learning_rate=0.01, warmup_steps=0, total_steps=10, **optimization))
    poison = tf1.trainable_variables()[-1].assign([np.nan, 0.0])
    with session() as opened:
        opened.run(poison)
        # Where the step fails, the scale may have been halved before: nobody saves it.
        state = tf1.trainable_variables() if "loss_scaling" in optimization else tf1.global_variables()
        before = opened.run(state)
        with pytest.raises(tf.errors.InvalidArgumentError, match="the loss or its gradient is not a finite number"):
            opened.run(spec.train_op)
        after = opened.run(state)
    assert all(old.tobytes() == new.tobytes() for old, new in zip(before, after))


@pytest.mark.usefixtures("_without_update")
def test_dropout_depends_on_seed_and_step_alone():
    losses = []
    for seed in (1, 2):
        with tf.Graph().as_default():  # with the same weights: `build` sets the seed of the graph
            losses.append(values_at(build(TRAIN, seed=seed).loss, 4, 9, 4))
    assert [first == again for first, _, again in losses] == [True, True]
    assert len({*losses[0], *losses[1]}) == 4


def test_strategies_build_the_graph_as_it_is_written(monkeypatch):
    """Converted by AutoGraph, as they convert what they call, it would be code of another file."""
    files = []

    def compute(*_, **__):
        files.append(sys._getframe(1).f_code.co_filename)
        return {"logits": tf.zeros([8, 2])}

    monkeypatch.setattr(heads.ClassificationHead, "compute", compute)
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        tf.distribute.get_strategy().extended.call_for_each_replica(lambda: build(PREDICT))
    assert files == [model_fn.__file__]
