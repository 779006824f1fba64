"""What the log says of the machine of a run, and where it evaluates."""

import pytest
import tensorflow as tf

from bert_tf.runtime import machine
from bert_tf.runtime.cluster import Cluster, Worker
from bert_tf.runtime.machine import Machine, Plan
from bert_tf.runtime.settings import DeviceSettings


@pytest.fixture
def warned(monkeypatch, caplog):
    """Describes a machine with a GPU that TensorFlow cannot use; returns whether that is warned of."""
    monkeypatch.setattr(machine.diagnosis, "unused_gpu_warning", lambda: "computing on the CPU, although there is a GPU")

    def describe(environment=(), **settings):
        machine.describe(Machine(tf.compat.v1.ConfigProto()), DeviceSettings(**settings), dict(environment))
        return "although there is a GPU" in caplog.text

    return describe


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        *((settings, True) for settings in ({}, {"num_gpus": 1}, {"strategy": "one_device"})),
        *((settings, False) for settings in ({"visible_gpus": "None "}, {"num_gpus": 0}, {"device": "/CPU:0"})),
    ],
)
def test_a_gpu_that_is_idle_by_mistake_is_named(warned, settings, named):
    assert warned(**settings) == named


@pytest.mark.parametrize(("value", "ignored"), [("1", True), ("yes", True), ("True", False), ("false", False)])
def test_growth_that_cannot_be_read_is_said_to_have_no_effect(warned, caplog, value, ignored):
    """TensorFlow says so itself, in a log that is not shown."""
    warned(environment={"TF_FORCE_GPU_ALLOW_GROWTH": value}, num_gpus=0)
    assert (f"TF_FORCE_GPU_ALLOW_GROWTH={value} in the environment has no effect" in caplog.text) == ignored


def placed(op):
    """Stands for what puts operations on devices."""
    return op.device


TWO = ("/device:GPU:0", "/device:GPU:1")


@pytest.mark.parametrize(
    ("plan", "towers"),
    [
        (Plan("one_device", TWO[:1]), (None,)),
        (Plan("one_device", TWO, device_function=placed), (placed,)),  # parts of one model
        (Plan("mirrored", TWO), TWO),
        (Plan("mirrored", TWO[:1]), (None,)),
        (Plan("central_storage", TWO), TWO),
        (Plan("multi_worker", TWO, Cluster((Worker("worker", 0, "a", 1, "a:1"),), 0)), TWO),  # its own alone
    ],
)
def test_each_device_that_has_a_whole_model_evaluates(plan, towers):
    assert plan.towers == towers
