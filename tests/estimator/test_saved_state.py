"""What checkpoints hold, above all of word vectors whose updates are put off."""

import re
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore
from bert_tf.estimator import run
from bert_tf.features.batching import Schedule
from bert_tf.optimization.averaging import MovingAverage
from bert_tf.optimization.parts import LayerDecay
from tests.estimator import toy, wide
from tests.labelled import HEAD_VARIABLES
from tests.tiny import random_weights

pytestmark = pytest.mark.versions

LAST = wide.SCHEDULE.steps
WAYS = {"rates": "cosine", "layer_decay": LayerDecay(0.8, layers=1)}
TABLE = "bert/embeddings/word_embeddings"
WEIGHTS = {*encoder_shapes(wide.CONFIG), *HEAD_VARIABLES}
MOMENTS = {f"{name}/{moment}" for name in WEIGHTS for moment in ("adam_m", "adam_v")}


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains the wide model, saving every 7 steps."""
    folder = tmp_path_factory.mktemp("pretrained")
    write_checkpoint(folder / "bert_model.ckpt", random_weights(wide.CONFIG))
    restore = plan_restore(CheckpointReader(folder / "bert_model.ckpt"), wide.CONFIG, HEAD_VARIABLES)

    def train(folder, *, schedule=wide.SCHEDULE, **model):
        training = {"save_checkpoints_steps": 7, "keep_optimizer_slots": True}
        settings = {"config": wide.CONFIG, "restore": restore, "learning_rate": 0.001, **model}
        toy.train(folder, schedule=schedule, data=wide.features(), training=training, **settings)
        return folder

    return train


@pytest.fixture(scope="module")
def deferred(tmp_path_factory, train):
    return train(tmp_path_factory.mktemp("deferred"), **WAYS)


@pytest.fixture(scope="module")
def at_once(tmp_path_factory, train):
    return train(tmp_path_factory.mktemp("at_once"), defer_embeddings=False, **WAYS)


@pytest.mark.parametrize("step", [7, 14, 28, LAST])
def test_every_checkpoint_holds_rows_as_they_are_at_its_step(deferred, at_once, step):
    actual, expected = toy.entries(deferred, step), toy.entries(at_once, step)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=1e-6, err_msg=name)


def columns(folder, *names):
    return [[line[name] for line in toy.metrics_lines(folder)] for name in names]


def test_updates_that_are_put_off_follow_the_schedule(deferred, at_once):
    losses, norms, rates = columns(deferred, "loss", "gradient_norm", "learning_rate")
    expected_losses, expected_norms = columns(at_once, "loss", "gradient_norm")
    np.testing.assert_allclose(losses, expected_losses, atol=1e-6)
    np.testing.assert_allclose(norms, expected_norms, rtol=1e-5)
    # Two steps of warm-up, then half a cosine over 28.
    np.testing.assert_allclose(rates, [0, 5e-4, *(5e-4 * (1 + np.cos(np.pi * n / 28)) for n in range(28))], rtol=1e-5)


def test_rows_that_no_batch_used_moved_nevertheless(deferred):
    used = np.unique(wide.features().token_ids)
    unused = np.setdiff1d(np.arange(wide.WORDS), used)
    before, after = random_weights(wide.CONFIG)[TABLE][unused], toy.entries(deferred, LAST)[TABLE][unused]
    assert len(unused) > 1000
    # Only decay moves them, by 1 - rate * 0.01 in every step; the rate of embeddings is 0.8 of that of the layer above, twice.
    (rates,) = columns(deferred, "learning_rate")
    np.testing.assert_allclose(after, before * np.prod(1.0 - 0.01 * 0.64 * np.array(rates)), rtol=1e-6)


def test_checkpoints_hold_what_is_trained_under_published_names_and_moments_on_request(deferred):
    shape = r"bert/(embeddings|encoder/layer_\d+/(attention/(self|output)|intermediate|output)|pooler)/.+|output_(weights|bias)"
    assert [name for name in WEIGHTS if not re.fullmatch(shape, name)] == []
    for step in (7, LAST):
        assert toy.entries(deferred, step).keys() == {*WEIGHTS, *MOMENTS, "global_step"}


def go_on(train, whole, folder, step, **settings):
    """Returns the last checkpoints of a run and of its copy that goes on from a step."""
    shutil.copytree(whole, folder)
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{step}"\n')
    last = run.last_step(whole)
    train(folder, **settings)
    return toy.entries(whole, last), toy.entries(folder, last)


def test_a_run_continues_from_a_checkpoint_bit_for_bit(tmp_path, train, deferred):
    expected, entries = go_on(train, deferred, tmp_path / "copy", 14, **WAYS)
    assert [name for name in expected if entries[name].tobytes() != expected[name].tobytes()] == []
    steps = {path.stem for path in (tmp_path / "copy").glob("*.index")}
    assert steps == {f"model.ckpt-{n}" for n in (7, 14, 21, 28, LAST)}


def test_a_run_by_lamb_continues_bit_for_bit(tmp_path, pretrained):
    training = {"save_checkpoints_steps": 2, "keep_optimizer_slots": True}
    ways = {"optimizer": "lamb", "average": MovingAverage(0.9), "layer_decay": LayerDecay(0.9, layers=1)}
    settings = {"schedule": Schedule(rows=16, batch_size=4, epochs=1), "training": training, "restore": pretrained, **ways}
    toy.train(tmp_path / "whole", **settings)
    expected, entries = go_on(toy.train, tmp_path / "whole", tmp_path / "copy", 2, **settings)
    assert {"output_weights", "output_weights/adam_m", "output_weights/adam_v"} <= expected.keys()
    assert [name for name in expected if entries[name].tobytes() != expected[name].tobytes()] == []
