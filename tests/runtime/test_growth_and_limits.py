"""A limit beside TF_FORCE_GPU_ALLOW_GROWTH, which TensorFlow takes both: memory grows up to the limit."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from bert_tf.errors import DeviceError
from bert_tf.runtime import devices
from bert_tf.runtime.settings import DeviceSettings
from tests.runtime.fake_machine import FakeMachine

FORCED = "TF_FORCE_GPU_ALLOW_GROWTH"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    fake = FakeMachine(tmp_path, monkeypatch)
    fake.tensorflow_sees({}, {})
    fake.accepts_settings()
    monkeypatch.setattr(devices, "_set_threads", lambda _: None)
    return fake


def test_a_limit_and_growth_that_is_forced_are_both_taken(machine, monkeypatch):
    monkeypatch.setenv(FORCED, "true")
    settings = DeviceSettings(gpu_memory_limit_mb=5175)
    assert devices.configure(settings, {FORCED: "true"}) == ("/device:GPU:0", "/device:GPU:1")
    assert machine.growing == []  # TensorFlow refuses to be told of both, and reads its variable by itself
    parts = [tf.config.get_logical_device_configuration(gpu) for gpu in tf.config.get_visible_devices("GPU")]
    assert [[part.memory_limit for part in gpu] for gpu in parts] == [[5175], [5175]]
    limits = devices.session_config(settings).gpu_options.experimental.virtual_devices
    assert [list(gpu.memory_limit_mb) for gpu in limits] == [[5175], [5175]]


@pytest.mark.usefixtures("machine")
def test_the_flags_still_exclude_each_other():
    """As in TensorFlow, where one is set by calls."""
    with pytest.raises(DeviceError, match="exclude each other"):
        devices.configure(DeviceSettings(gpu_memory_limit_mb=5175, gpu_memory_growth=True), {FORCED: "true"})


def test_tensorflow_refuses_to_be_told_of_growth_beside_a_limit():
    """In a context that is thrown away: why `configure` makes one of the two calls."""
    gpu, made = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU"), context.Context()
    for name, value in {"physical_devices": [gpu], "visible_device_list": [gpu], "pluggable_devices": []}.items():
        setattr(made, f"_{name}", value)
    made.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=1)])
    with pytest.raises(ValueError, match="memory growth"):
        made.set_memory_growth(gpu, True)
