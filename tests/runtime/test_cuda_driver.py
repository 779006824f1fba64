"""What cuInit answers, in the list of devices."""

from __future__ import annotations

import ctypes
import json
from types import SimpleNamespace

import pytest

from bert_tf.operations import devices
from bert_tf.runtime import cuda_driver, inventory, nvidia
from tests.runtime.fake_machine import CUDA_12, DRIVER, SMI_RTX, FakeMachine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A GPU whose driver and libraries are there."""
    fake = FakeMachine(tmp_path, monkeypatch)
    fake.smi(*SMI_RTX[:1])
    fake.loads([DRIVER, *CUDA_12])
    return fake


@pytest.fixture
def answers(monkeypatch):
    def answer(number):
        libraries = {DRIVER: SimpleNamespace(cuInit=lambda _: number)}
        monkeypatch.setattr(ctypes, "CDLL", lambda name: libraries.get(name, name))

    return answer


def report(environment=None):
    taken = inventory.take(nvidia.survey(), environment or {})
    return devices.Report(taken, {}, devices.Choice("one_device", ("/device:CPU:0",), 1))


@pytest.mark.parametrize(
    ("number", "name", "meaning", "remedy"),
    [
        (802, "CUDA_ERROR_SYSTEM_NOT_READY", "fabric manager", "systemctl start nvidia-fabricmanager"),
        (999, "CUDA_ERROR_UNKNOWN", "suspended", "modprobe nvidia_uvm"),
        (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "too old", "install a newer driver"),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "differ in version", "restart the machine"),
        (35, "cudaErrorInsufficientDriver", "too old", "install a newer driver"),
        (100, "CUDA_ERROR_NO_DEVICE", "no GPU is shown", "--gpus all"),
        (711, "error 711", "no reason is known", "CUresult 711"),
    ],
)
@pytest.mark.usefixtures("machine")
def test_an_error_is_named_for_people_and_programs(answers, number, name, meaning, remedy):
    answers(number)
    said, data = str(report()), json.loads(devices.as_json(report()))
    assert f", cuInit returns {number}, {name}\n" in said
    assert f"    cuInit returns {number}, {name}: " in said
    assert data["driver_status"] == number
    (cause,) = data["no_gpu"]
    assert cause["code"] == "driver_does_not_start"
    assert meaning in cause["reason"]
    assert remedy in cause["remedy"]


@pytest.mark.usefixtures("machine")
def test_a_driver_that_starts_is_no_cause(answers):
    answers(0)
    assert "cuInit" not in str(report())
    assert json.loads(devices.as_json(report()))["driver_status"] == 0


@pytest.mark.usefixtures("machine")
def test_a_gpu_that_is_hidden_is_no_fault_of_the_driver(answers):
    answers(100)
    (gpu,) = report({"CUDA_VISIBLE_DEVICES": "-1"}).inventory.unusable_gpus
    assert [cause.code for cause in gpu.causes] == ["hidden_by_environment"]


@pytest.mark.parametrize("value", ["MIG-1111", "0", "GPU-aaaa"])
@pytest.mark.usefixtures("machine")
def test_a_variable_that_shows_a_gpu_does_not_explain_that_there_is_none(answers, value):
    """Nor does one that names a part of a GPU: which belong to which is not told."""
    answers(100)
    (gpu,) = report({"CUDA_VISIBLE_DEVICES": value}).inventory.unusable_gpus
    assert [cause.code for cause in gpu.causes] == ["driver_does_not_start"]
    assert "CUDA_VISIBLE_DEVICES" in gpu.causes[0].remedy


def test_where_there_is_no_driver_nothing_is_asked(machine):
    machine.loads()
    assert cuda_driver.status() is None


def test_a_library_that_is_no_driver_is_not_asked(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert cuda_driver.status() is None
