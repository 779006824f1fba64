"""Averages of the weights in whole runs: what a model folder holds, and what a run that was interrupted makes of it."""

import dataclasses
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints import saved
from bert_tf.estimator import run
from bert_tf.optimization.averaging import MovingAverage
from bert_tf.optimization.parts import POOLER
from bert_tf.run_layout import EMA
from tests.estimator import toy
from tests.estimator.test_hooks import FailAfter
from tests.tiny import held

SCHEDULE = dataclasses.replace(toy.SCHEDULE, epochs=2)  # 12 steps
LAST, DECAY = SCHEDULE.steps, 0.9
AVERAGED = {"schedule": SCHEDULE, "average": MovingAverage(DECAY)}
EVERY_STEP = {"save_checkpoints_steps": 1, "keep_checkpoint_max": 0}
RUNS = {
    "word vectors put off": {},
    "loss scaling, micro-batches, a frozen pooler": {"loss_scaling": True, "micro_batches": 2, "frozen": frozenset({POOLER})},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, pretrained):
    """Runs with a moving average, of which every step is saved."""
    folders = {}
    for name, settings in RUNS.items():
        folders[name] = tmp_path_factory.mktemp("run")
        toy.train(folders[name], restore=pretrained, training=EVERY_STEP, **AVERAGED, **settings)
    return folders


def recursion(folder):
    """The average of all checkpoints, in NumPy and float64."""
    saved = [toy.entries(folder, step) for step in range(1, LAST + 1)]
    weights = DECAY ** np.arange(LAST)[::-1]
    return {name: np.einsum("s,s...", weights / weights.sum(), [of_step[name] for of_step in saved]) for name in saved[0]}


@pytest.mark.parametrize("name", RUNS)
def test_the_moving_average_is_that_of_the_weights_after_each_step(runs, name):
    average, wanted = held(saved.checkpoint(runs[name], EMA)), recursion(runs[name])
    assert average.keys() == wanted.keys()
    for variable in wanted.keys() - {"global_step"}:
        np.testing.assert_allclose(average[variable], wanted[variable], rtol=0, atol=1e-6, err_msg=variable)
    assert average["global_step"] == LAST
    assert np.abs(average["output_weights"] - toy.entries(runs[name], LAST)["output_weights"]).max() > 1e-3


def test_what_is_kept_are_the_average_of_the_last_step_and_plain_weights(runs):
    folder = runs["word vectors put off"]
    assert sorted(path.name for path in (folder / EMA).iterdir()) == [
        "checkpoint",
        f"model.ckpt-{LAST}.data-00000-of-00001",
        f"model.ckpt-{LAST}.index",
    ]
    assert not [name for name in toy.entries(folder, LAST) if name.endswith("/ema")]
    assert not (folder / "optimizer").exists()


@pytest.fixture
def stopped(tmp_path, pretrained, monkeypatch):
    """A run that failed after 7 steps, as a kill would have it; the checkpoint of step 5 is the last."""
    monkeypatch.setattr(run, "_report_timing", lambda *_: None)
    estimator = toy.make_estimator(tmp_path, restore=pretrained, **AVERAGED)
    training = run.Training(SCHEDULE, save_checkpoints_steps=5)
    with pytest.raises(RuntimeError):
        run.train(estimator, toy.features(SCHEDULE.rows), training, seed=toy.SEED, hooks=[FailAfter(7)])
    return tmp_path


def same_bits(entries, wanted):
    return entries.keys() == wanted.keys() and all(entries[name].tobytes() == wanted[name].tobytes() for name in wanted)


def test_a_run_that_goes_on_has_the_same_average_to_the_last_bit(stopped, runs, pretrained):
    for kind in ("data-00000-of-00001", "index"):  # the average of the next checkpoint, which the kill has kept from the disk
        shutil.copy(stopped / EMA / f"model.ckpt-5.{kind}", stopped / EMA / f"model.ckpt-10.{kind}")
    toy.train(stopped, restore=pretrained, **AVERAGED)
    whole = runs["word vectors put off"]
    assert same_bits(toy.entries(stopped, LAST), toy.entries(whole, LAST))
    assert same_bits(held(saved.checkpoint(stopped, EMA)), held(saved.checkpoint(whole, EMA)))


def test_a_kill_before_the_last_average_is_listed_is_made_up_for(runs, tmp_path):
    folder = shutil.copytree(runs["word vectors put off"], tmp_path / "copy")
    (folder / EMA / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{LAST - 1}"\n')
    toy.train(folder, training=EVERY_STEP, **AVERAGED)
    assert (folder / EMA / "checkpoint").read_text().startswith(f'model_checkpoint_path: "model.ckpt-{LAST}"')
