"""Words covered by [MASK], by all words or a sample of them, and pairs of texts."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import pretraining_shapes
from bert_tf.config import BertConfig
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.extensions.pretrain.head import draw_words, sampled_log_probabilities, sampling_probability
from bert_tf.fields import SLOTS
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.modeling.layers import Words
from tests import masked, reference
from tests.graphs import evaluate
from tests.modeling.recorder import Recorder
from tests.tiny import random_weights

tf1 = tf.compat.v1
CONFIG = dataclasses.replace(BertConfig.tiny(vocab_size=20), num_hidden_layers=1)
RANDOM = np.random.default_rng(3)
HEAD = {name: RANDOM.normal(0, 0.3, shape).astype(np.float32) for name, shape in pretraining_shapes(CONFIG).items()}
WEIGHTS = {**random_weights(CONFIG), **HEAD}
DATA = masked.features(7)
WAYS = {
    "default": Execution(),
    "padded": Execution(pack_tokens=False),
    "last layer in full": Execution(last_layer_cls_only=False),
    "published": Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False),
}


def spec(**options):
    return HeadSpec(2, PRETRAINING, tuple(options.items()))


@functools.cache
def learn(execution, rows=None, *, draws=False, **options):
    """Returns outputs, loss and gradients by name, of all rows or of some of them as of one of several replicas."""
    batch = masked.batch(DATA, None if rows is None else np.array(rows))
    return masked.learn(batch, WEIGHTS, CONFIG, spec(**options), execution, draws=draws)


def losses(weights, batch):
    """Mean losses of words and of pairs, by the reference."""
    words, pairs = reference.pretraining(batch, weights, CONFIG)
    true = DATA.targets["masked_lm_ids"]
    return -words[np.arange(len(true)), true].mean(), -pairs[np.arange(len(pairs)), batch["next_sentence_labels"]].mean()


def of_slots(column):
    """[B, S, ...] to the real slots."""
    return column[np.arange(column.shape[1]) < DATA.slots[:, None]]


@pytest.mark.parametrize("way", WAYS)
def test_the_loss_is_the_sum_of_both_means_of_the_numpy_reference_and_what_is_left_out_changes_nothing(way):
    words, pairs = losses(WEIGHTS, masked.batch(DATA))
    outputs, loss, gradients = learn(WAYS[way])
    assert loss == pytest.approx(words + pairs, rel=1e-5)
    assert -of_slots(outputs["masked_lm_log_probs"]).mean() == pytest.approx(words, rel=1e-5)
    _, full_loss, full = learn(WAYS["last layer in full"])
    assert loss == pytest.approx(full_loss, abs=1e-6)
    for name, gradient in full.items():
        np.testing.assert_allclose(gradients[name], gradient, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("way", ["default", "published"])
def test_gradients_are_the_slopes_of_the_numpy_reference(way):
    batch, step = masked.batch(DATA), 1e-4
    _, _, gradients = learn(WAYS[way])
    assert gradients.keys() == WEIGHTS.keys()
    for name, weight in WEIGHTS.items():
        direction = np.random.default_rng(1).normal(size=weight.shape)
        up, down = (sum(losses({**WEIGHTS, name: weight + d * direction}, batch)) for d in (step, -step))
        slope = (up - down) / (2 * step)
        assert (gradients[name] * direction).sum() == pytest.approx(slope, rel=1e-4, abs=2e-6), name


def test_parts_of_a_step_add_up_however_many_words_each_has():
    """The first part has none."""
    _, whole, expected = learn(WAYS["default"])
    parts = [learn(WAYS["default"], part) for part in ((0, 4), (1, 2, 3, 5, 6))]
    assert sum(loss for _, loss, _ in parts) == pytest.approx(whole, rel=1e-6)
    for name, gradient in expected.items():
        np.testing.assert_allclose(sum(gradients[name] for _, _, gradients in parts), gradient, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("way", ["default", "padded"])
def test_the_last_layer_computes_first_tokens_and_hidden_places(way):
    recorder = Recorder()
    outputs_of = functools.partial(compute_outputs, Model(CONFIG, masked.HEAD), heads.make_head(masked.HEAD))
    with tf.Graph().as_default(), tf1.Session() as session:
        features = {name: tf1.placeholder_with_default(v, [None] * v.ndim) for name, v in masked.batch(DATA).items()}
        outputs_of(features, dataclasses.replace(WAYS[way], dropout=recorder))
        session.run(tf1.global_variables_initializer())
        shapes = [tuple(shape) for shape in session.run(recorder.shapes)]
    rows, places = len(DATA), int(DATA.slots.max())
    asked = rows + int(DATA.slots.sum()) if WAYS[way].pack_tokens else rows * (1 + places)
    assert shapes[-3:] == [(rows, 2, 1 + places, int(DATA.lengths.max())), (asked, 8), (asked, 8)]


def test_the_best_words_come_first_with_their_log_probabilities():
    outputs, _, _ = learn(WAYS["default"])
    words, _ = reference.pretraining(masked.batch(DATA), WEIGHTS, CONFIG)
    order = np.argsort(-words, axis=-1)[:, :10]
    np.testing.assert_array_equal(of_slots(outputs["masked_lm_top_ids"]), order)
    log_probs = of_slots(outputs["masked_lm_top_log_probs"])
    np.testing.assert_allclose(log_probs, np.take_along_axis(words, order, axis=-1), rtol=1e-5)


def test_training_does_not_look_for_the_best_words():
    with tf.Graph().as_default() as graph:
        features = {name: tf.constant(value) for name, value in masked.batch(DATA).items()}
        head = heads.make_head(masked.HEAD)
        outputs = compute_outputs(Model(CONFIG, masked.HEAD), head, features, Execution())
        loss = tf.reduce_sum(head.losses(outputs, features, LossOptions()))
        tf.gradients(loss, tf1.trainable_variables())
        needed = tf1.graph_util.extract_sub_graph(graph.as_graph_def(), [loss.op.name])
    assert "TopKV2" in {operation.type for operation in graph.get_operations()}
    assert "TopKV2" not in {node.op for node in needed.node}


def test_without_pairs_there_are_words_alone():
    head = heads.make_head(spec(next_sentence=False))
    words, _ = losses(WEIGHTS, masked.batch(DATA))
    outputs, loss, gradients = learn(WAYS["default"], next_sentence=False)
    assert loss == pytest.approx(words, rel=1e-5)
    assert set(outputs) == {field.name for field in head.outputs}
    assert not {name for name in gradients if "pooler" in name or "seq_relationship" in name}
    assert (head.reads_pooled, head.targets) == (False, ())


def test_rows_without_hidden_words_have_the_loss_of_their_pair():
    outputs, loss, _ = learn(WAYS["default"], (0, 4))
    assert outputs["masked_lm_log_probs"].shape == (2, 0)
    _, pairs = reference.pretraining(masked.batch(DATA), WEIGHTS, CONFIG)
    true = DATA.targets["next_sentence_labels"][[0, 4]]
    assert loss == pytest.approx(-pairs[[0, 4], true].sum() / len(DATA), rel=1e-5)


def test_training_with_words_drawn_reads_no_other():
    assert not heads.make_head(spec(sampled_softmax=5)).reads_word_table
    _, _, gradients = learn(WAYS["default"], draws=True, sampled_softmax=5)
    used = set(DATA.token_ids) | set(DATA.targets["masked_lm_ids"]) | {0}  # padding is read too
    words = gradients["bert/embeddings/word_embeddings"]
    assert 0 < np.count_nonzero(np.abs(words).sum(axis=1)) <= len(used) + 5


def test_evaluation_reads_all_words_however_the_head_was_trained():
    all_words, drawn = (learn(WAYS["default"], **options)[0] for options in ({}, {"sampled_softmax": 5}))
    for name, value in all_words.items():
        np.testing.assert_array_equal(drawn[name], value)
    assert SLOTS in heads.make_head(masked.HEAD).inputs


V, DRAWS = 300, 200_000
SAMPLE_RANDOM = np.random.default_rng(0)
TABLE, BIAS = SAMPLE_RANDOM.normal(0, 0.5, [V, 4]).astype(np.float32), SAMPLE_RANDOM.normal(0, 0.5, V).astype(np.float32)
ROWS, TRUE = SAMPLE_RANDOM.normal(size=[3, 4]).astype(np.float32), np.array([7, 0, 250], np.int32)


def drawn(count, seed=(1, 2)):
    return evaluate(lambda: draw_words(count, V, tf.constant(seed, tf.int64)))


def log_probabilities(ids):
    """Of the true words, by the words of some ids."""

    def build():
        true, others = (Words(tf.constant(some_ids), tf.constant(TABLE[some_ids])) for some_ids in (TRUE, ids))
        return sampled_log_probabilities(tf.constant(ROWS), true, others, tf.constant(BIAS), tf.float32)

    return evaluate(build)


def test_probabilities_are_of_all_words_together_one_and_fall():
    probabilities = evaluate(lambda: sampling_probability(tf.range(V), V))
    assert abs(probabilities.sum() - 1) < 1e-5
    assert (np.diff(probabilities) < 0).all()


def test_words_are_drawn_as_often_as_their_probability_says():
    expected = evaluate(lambda: sampling_probability(tf.range(V), V)) * DRAWS
    counts = np.bincount(drawn(DRAWS), minlength=V)
    assert len(counts) == V
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_with_many_draws_it_is_the_log_probability():
    scores = ROWS @ TABLE.T + BIAS
    exact = scores[np.arange(3), TRUE] - np.log(np.exp(scores).sum(axis=1))
    np.testing.assert_allclose(log_probabilities(drawn(DRAWS)), exact, atol=0.02)


def test_a_step_draws_its_own_words():
    assert (drawn(50) == drawn(50)).all()
    assert (drawn(50) != drawn(50, seed=(1, 3))).any()
