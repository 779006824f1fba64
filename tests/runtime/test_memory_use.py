"""Memory in use."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.runtime.memory_use import MemoryUse

MEBIBYTE = 1 << 20


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine with two GPUs; returns what TensorFlow says of each."""
    names = [f"/device:GPU:{number}" for number in (0, 1)]
    devices = [tf.config.LogicalDevice(name, "GPU") for name in names]
    told = {
        "GPU:0": {"current": 10 * MEBIBYTE, "peak": 40 * MEBIBYTE},
        "GPU:1": {"current": 20 * MEBIBYTE, "peak": 30 * MEBIBYTE},
    }
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: devices if kind == "GPU" else [])
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda name: told[name])
    return told


def test_memory_of_the_process_grows_with_what_it_touches():
    use = MemoryUse()
    before = use.read()["host_memory_mb"]
    held = np.ones(64 * MEBIBYTE, np.int8)
    after = use.read()["host_memory_mb"]
    assert held.nbytes == 64 * MEBIBYTE
    assert after - before == pytest.approx(64, abs=16)


def test_without_a_gpu_only_the_host_and_no_device_is_set_up(monkeypatch):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: [])
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda _: pytest.fail("sets up the devices"))
    assert MemoryUse().read().keys() == {"host_memory_mb"}


@pytest.mark.usefixtures("two_gpus")
def test_gpu_that_has_most():
    found = MemoryUse().read()
    assert (found["gpu_memory_mb"], found["gpu_memory_peak_mb"]) == (20, 40)


@pytest.mark.parametrize("error", [ValueError("no such device"), RuntimeError("late"), tf.errors.InternalError(None, None, "")])
def test_gpu_that_does_not_tell_is_not_asked_again(two_gpus, monkeypatch, error):
    asked = []

    def fails(name):
        asked.append(name)
        raise error

    monkeypatch.setattr(tf.config.experimental, "get_memory_info", fails)
    use = MemoryUse()
    assert [use.read().keys() for _ in range(2)] == [{"host_memory_mb"}] * 2
    assert len(asked) == 1
    assert two_gpus


@pytest.mark.usefixtures("two_gpus")
def test_devices_that_cannot_be_set_up(monkeypatch):
    def fails(kind):
        raise RuntimeError(kind)

    monkeypatch.setattr(tf.config, "list_logical_devices", fails)
    assert MemoryUse().read().keys() == {"host_memory_mb"}


@pytest.mark.usefixtures("two_gpus")
def test_with_several_machines_no_device_is_set_up(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda _: pytest.fail("sets up the devices"))
    assert MemoryUse().read().keys() == {"host_memory_mb"}


def test_costs_microseconds():
    use = MemoryUse()
    times = []
    for _ in range(200):
        start = time.perf_counter()
        use.read()
        times.append(time.perf_counter() - start)
    assert np.median(times) < 1e-3
