"""Memory for tensors, by what TensorFlow says of the GPUs that it computes on, and memory in use."""

import contextlib
import mmap
import os
from types import SimpleNamespace
from unittest import mock

import pytest
import tensorflow as tf

from bert_tf.runtime import devices, machine, memory
from bert_tf.runtime.memory import MemoryUse
from bert_tf.runtime.settings import DeviceSettings
from tests.runtime.fake_machine import FakeMachine

MEBIBYTE = 2**20
BIG, SMALL, SLICE = 23000, 1475, 9728  # an RTX 3090, a GT 1030, a part of an A100


@pytest.fixture
def memory_of(tmp_path, monkeypatch):
    """Sets a machine up whose TensorFlow lists GPUs of so many MiB; returns what there is for tensors."""
    fake, seen = FakeMachine(tmp_path, monkeypatch), []

    def session(config=None):
        numbers = [int(number) for number in config.gpu_options.visible_device_list.split(",")]
        session.visible.append(numbers)
        parts = config.gpu_options.experimental.virtual_devices
        limits = [limit for gpu in parts for limit in gpu.memory_limit_mb] or [seen[number] for number in numbers]
        place = "/job:localhost/replica:0/task:0/device"
        sizes = {"CPU:0": 256, **{f"GPU:{number}": limit for number, limit in enumerate(limits)}}
        listed = [SimpleNamespace(name=f"{place}:{name}", memory_limit_bytes=size * MEBIBYTE) for name, size in sizes.items()]
        return contextlib.nullcontext(SimpleNamespace(list_devices=lambda: listed))

    session.visible = []
    monkeypatch.setattr(memory.tf1, "Session", session)
    monkeypatch.setattr(machine, "make_strategy", lambda *_: None)

    def ask(*gpus, **settings):
        seen[:] = gpus
        fake.tensorflow_sees(*[{}] * len(gpus))
        fake.accepts_settings()
        usable = machine.set_up(DeviceSettings(**settings), environment={}).gpu_memory
        return usable and usable / MEBIBYTE

    ask.visible = session.visible
    return ask


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, SLICE),
        ({"visible_gpus": "0"}, BIG),
        ({"num_gpus": 1}, BIG),
        ({"strategy": "one_device"}, BIG),
        ({"device": "/GPU:1"}, SLICE),
        ({"device": "/device:gpu:0"}, BIG),
        ({"place": "embeddings:/CPU:0"}, BIG),  # the rest is where TensorFlow chooses
        ({"place": "encoder/layer_0:/GPU:1"}, SLICE),
        ({"gpu_memory_limit_mb": 3000}, 3000),
        ({"gpu_memory_limit_mb": 3000, "virtual_devices": 2}, 1500),
    ],
)
def test_the_smallest_gpu_of_those_that_compute_decides(memory_of, settings, expected):
    """One that TensorFlow leaves out does not count, though nvidia-smi would name it."""
    assert memory_of(BIG, SLICE, SMALL, **{"visible_gpus": "0,1", **settings}) == expected


@pytest.mark.parametrize("settings", [{"visible_gpus": "none"}, {"num_gpus": 0}, {"device": "/CPU:0"}])
def test_where_the_cpu_computes_no_session_is_made(memory_of, settings):
    assert memory_of(BIG, **settings) is None
    assert memory_of() is None
    assert memory_of.visible == []


def test_a_session_that_lists_no_gpu():
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})  # nor is one seen where there is
    assert memory.for_tensors(config, ("/device:CPU:0",)) is None
    assert memory.for_tensors(config, ("/device:GPU:0",)) is None  # a real session, which lists none


@pytest.mark.parametrize(
    ("settings", "seen", "used"),
    [
        ({"strategy": "one_device"}, [0], "/device:GPU:0"),
        ({"strategy": "one_device", "visible_gpus": "1,2"}, [1], "/device:GPU:0"),
        ({"device": "/GPU:2"}, [2], "/device:GPU:0"),
        ({"device": "/GPU:1", "visible_gpus": "0,2"}, [2], "/device:GPU:0"),
        ({"device": "/GPU:3", "virtual_devices": 2, "gpu_memory_limit_mb": 2000}, [1], "/device:GPU:1"),
        ({"place": "encoder:/GPU:1"}, [0, 1], "/device:GPU:1"),
        ({}, [0, 1, 2], "/device:GPU:0"),
        ({"strategy": "mirrored"}, [0, 1, 2], "/device:GPU:0"),
    ],
)
def test_one_device_takes_memory_of_no_other(memory_of, settings, seen, used):
    memory_of(BIG, BIG, BIG, **settings)
    assert memory_of.visible == [seen]
    narrowed = devices.narrowed(DeviceSettings(**settings), {})
    plan = machine.plan(DeviceSettings(**settings), environment={})
    assert plan.devices[0] == used
    assert narrowed.strategy == settings.get("strategy")


def test_the_log_says_what_there_is_and_which_gpu_it_is(memory_of, caplog, monkeypatch):
    caplog.set_level("INFO", logger="absl")
    monkeypatch.setattr(machine.diagnosis, "unused_gpu_warning", lambda: None)
    settings = DeviceSettings(device="/GPU:1")
    memory_of(BIG, SLICE, device="/GPU:1")
    monkeypatch.setenv("TF_CONFIG", "{}")
    machine.describe(machine.set_up(settings, environment={}), settings, {})
    assert os.environ.pop("TF_CONFIG") == "{}"  # a later training's
    assert "memory for tensors on each GPU: 9728 MiB" in caplog.text
    assert "only --device=/GPU:1 is visible, as /GPU:0" in caplog.text


@pytest.fixture
def _two_gpus(monkeypatch):
    """A machine with two GPUs, whose memory TensorFlow tells."""
    devices = [tf.config.LogicalDevice(f"/device:GPU:{number}", "GPU") for number in (0, 1)]
    told = {
        "GPU:0": {"current": 10 * MEBIBYTE, "peak": 40 * MEBIBYTE},
        "GPU:1": {"current": 20 * MEBIBYTE, "peak": 30 * MEBIBYTE},
    }
    for name in ("get_visible_devices", "list_logical_devices"):
        monkeypatch.setattr(tf.config, name, lambda kind: devices if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda name: told[name])


def test_memory_of_the_process_grows_with_what_it_touches():
    use = MemoryUse()
    before = use.measure()["host_memory_mb"]
    with mmap.mmap(-1, 64 * MEBIBYTE) as held:  # new pages, where malloc may have kept freed ones
        for start in range(0, 64 * MEBIBYTE, mmap.PAGESIZE):
            held[start] = 1
        after = use.measure()["host_memory_mb"]
    assert after - before == pytest.approx(64, abs=16)


@pytest.mark.usefixtures("_two_gpus")
def test_gpu_that_has_most():
    measured = MemoryUse().measure()
    assert (measured["gpu_memory_mb"], measured["gpu_memory_peak_mb"]) == (20, 40)


@pytest.mark.usefixtures("_two_gpus")
@pytest.mark.parametrize("error", [ValueError("no such device"), RuntimeError("late"), tf.errors.InternalError(None, None, "")])
def test_gpu_that_does_not_tell_is_not_asked_again(monkeypatch, error):
    ask = mock.Mock(side_effect=error)
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", ask)
    use = MemoryUse()
    assert [use.measure().keys() for _ in range(2)] == [{"host_memory_mb"}] * 2
    ask.assert_called_once()


@pytest.mark.usefixtures("_two_gpus")
def test_where_devices_cannot_be_set_up_only_the_host_counts(monkeypatch):
    monkeypatch.setattr(tf.config, "list_logical_devices", mock.Mock(side_effect=RuntimeError("GPU")))
    assert MemoryUse().measure().keys() == {"host_memory_mb"}
    # With several machines, or without a GPU, no device is set up.
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda _: pytest.fail("sets up the devices"))
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert MemoryUse().measure().keys() == {"host_memory_mb"}
    monkeypatch.delenv("TF_CONFIG")
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: [])
    assert MemoryUse().measure().keys() == {"host_memory_mb"}
