"""Memory for tensors: what nvidia-smi says is free, less what TensorFlow leaves to others."""

from __future__ import annotations

import dataclasses

import pytest

from bert_tf.runtime import gpu_memory, nvidia
from bert_tf.runtime.nvidia import Gpu, System
from bert_tf.runtime.settings import DeviceSettings

MEBIBYTE = 2**20
OLD = Gpu(model="GTX 1060", number=0, uuid="GPU-a", memory_total_mb=6072, memory_free_mb=5675, compute_capability="6.1")
NEW = Gpu(model="A100", number=1, uuid="GPU-b", memory_total_mb=40536, memory_free_mb=40000, compute_capability="8.0")


@pytest.fixture(autouse=True)
def _another_process():
    gpu_memory._as_found.cache_clear()
    yield
    gpu_memory._as_found.cache_clear()


@pytest.fixture
def room(monkeypatch):
    def ask(*gpus, shown=None, **settings):
        gpu_memory._as_found.cache_clear()
        monkeypatch.setattr(nvidia, "survey", lambda: System(gpus, "535"))
        environment = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
        found = gpu_memory.for_tensors(DeviceSettings(**settings), environment)
        return found if found is None else found / MEBIBYTE

    return ask


@pytest.mark.parametrize(
    ("capability", "left"), [("6.1", 500), ("7.5", 1050), ("8.6", 1536), ("9.0", 1800), ("12.0", 1800), (None, 1536)]
)
def test_leaves_what_tensorflow_leaves(room, capability, left):
    assert room(Gpu(number=0, memory_free_mb=10000, compute_capability=capability)) == 10000 - left


def test_a_small_gpu_keeps_less_back(room):
    assert room(Gpu(number=0, memory_free_mb=1000, compute_capability="8.0")) == 775


def test_a_second_run_in_the_process_has_the_memory_of_the_first(monkeypatch):
    """TensorFlow gives nothing back before the process ends, and uses it again."""
    found = iter([OLD, dataclasses.replace(OLD, memory_free_mb=80)])
    monkeypatch.setattr(nvidia, "survey", lambda: System((next(found),), "535"))
    assert [gpu_memory.for_tensors(DeviceSettings(), {}) for _ in range(2)] == [5175 * MEBIBYTE] * 2


def test_the_smallest_of_several_decides(room):
    assert room(NEW, OLD) == room(OLD)


@pytest.mark.parametrize("choice", [{"visible_gpus": "1"}, {"shown": "1"}, {"shown": "GPU-b"}, {"shown": "1,0", "num_gpus": 1}])
def test_of_those_that_are_chosen(room, choice):
    assert room(OLD, NEW, **choice) == 40000 - 1536


@pytest.mark.parametrize("choice", [{"strategy": "one_device"}, {"device": "/GPU:0"}, {"device": "/device:gpu:0"}])
def test_one_device_alone_decides(room, choice):
    assert room(NEW, OLD, **choice) == room(NEW)
    assert room(NEW, OLD, device="/GPU:1") == room(OLD)


def test_a_limit_is_what_there_is(room):
    assert room(OLD, gpu_memory_limit_mb=3000) == 3000
    assert room(OLD, gpu_memory_limit_mb=3000, virtual_devices=2) == 1500


@pytest.mark.parametrize("gpus", [(), (Gpu(number=0),)])
def test_says_nothing_where_nothing_is_known(room, gpus):
    assert room(*gpus) is None


@pytest.mark.parametrize("choice", [{"visible_gpus": "none"}, {"num_gpus": 0}])
def test_none_for_the_cpu(room, choice):
    assert room(OLD, **choice) is None
