"""The substitute for tf.estimator trains to the same bits, where TensorFlow has both."""

import functools
import importlib
import os
import signal

import pytest
import tensorflow as tf

from bert_tf.estimator import api
from tests.integration import commands
from tests.integration.test_kills import Moment, die_at
from tests.integration.test_multi_worker import cluster_of, finish

pytestmark = pytest.mark.versions

STEPS, EVERY = 40, 10
WAYS = {
    "one device": {},
    "two replicas": {"virtual_devices": 2},
    "central storage": {"virtual_devices": 2, "strategy": "central_storage"},
    "micro-batches": {"gradient_accumulation_steps": 2},
    "placed by hand": {"device": "cpu:0"},
}
SAVES = Moment("tensorflow.python.checkpoint.checkpoint_management", "update_checkpoint_state_internal", 3)


def choose(substitute, moment=None):
    """Has a forked process, which has imported `api`, choose again; it is killed at a moment."""
    os.environ[api.SUBSTITUTE] = "1" * substitute
    importlib.reload(api)
    assert api.Estimator.__module__.startswith("bert_tf" if substitute or not hasattr(tf, "estimator") else "tensorflow")
    if moment is not None:
        die_at(moment)


@pytest.fixture(scope="module")
def train(project):
    def run(folder, ways, *, substitute, moment=None):
        settings = {"num_train_steps": STEPS, "save_checkpoints_steps": EVERY, "learning_rate": 0.003, **ways}
        flags = project.flags(folder, do_train=True, **settings)
        return commands.run(flags, before=functools.partial(choose, substitute, moment))

    return run


@pytest.mark.skipif(not hasattr(tf, "estimator"), reason="TensorFlow 2.15 alone has both")
@pytest.mark.parametrize("way", [*WAYS, "two machines"])
def test_trains_to_the_same_bits(way, train, project, tmp_path):
    for name, substitute in (("own", False), ("substitute", True)):
        if way == "two machines":
            flags = project.flags(tmp_path / name, do_train=True, num_train_steps=STEPS, learning_rate=0.003)
            before = functools.partial(choose, substitute)
            done = finish([commands.start(flags, variables=variables, before=before) for variables in cluster_of(2)])
        else:
            done = [train(tmp_path / name, WAYS[way], substitute=substitute)]
        assert not any(process.returncode for process in done), done[0].stderr
    assert commands.same_bits(*(commands.weights(tmp_path / name, STEPS) for name in ("own", "substitute")))


@pytest.mark.skipif(hasattr(tf, "estimator"), reason="TensorFlow 2.15 calls every hook deprecated, later ones do not")
@pytest.mark.several_machines
@pytest.mark.parametrize("way", ["one device", "two replicas"])
def test_calls_nothing_that_is_deprecated(way, train, tmp_path):
    """By TensorFlow's own log, which says where a call stands; Python's warnings are errors in all tests."""
    ways = {**WAYS[way], "log_form": "published", "do_eval": True, "do_predict": True}
    said = train(tmp_path / "out", ways, substitute=True).stderr
    assert "Calling model_fn" in said
    assert [line for line in said.splitlines() if "deprecated" in line and "bert_tf" in line] == []


@pytest.mark.skipif(not hasattr(tf, "estimator"), reason="TensorFlow 2.15 alone has both")
def test_goes_on_to_the_same_bits_after_a_kill(train, tmp_path):
    """What tf.estimator began the substitute ends; what it began itself: test_whole_run.py and test_kills.py."""
    assert train(tmp_path / "whole", {}, substitute=False).returncode == 0
    assert train(tmp_path / "killed", {}, substitute=False, moment=SAVES).returncode == -signal.SIGKILL
    assert "continuing from step" in train(tmp_path / "killed", {}, substitute=True).stderr
    assert commands.same_bits(*(commands.weights(tmp_path / name, STEPS) for name in ("whole", "killed")))
