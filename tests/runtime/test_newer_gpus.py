"""What is said of GPUs by their compute capability and what the wheel was built for."""

from __future__ import annotations

import os

import pytest

from bert_tf.runtime import build, machine
from bert_tf.runtime.build import Build
from bert_tf.runtime.settings import DeviceSettings
from tests.runtime.fake_machine import FakeMachine

WHEEL = Build("2.15.1", True, "12.2", "8", ("sm_50", "sm_60", "sm_70", "sm_75", "compute_80"))
WHEEL_2_21 = Build("2.21.0", True, "12.5.1", "9", ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90"))
SLOW, DOUBTFUL = (
    "compiles the kernels, once for each user and driver",
    "and may fail with CUDA_ERROR_INVALID_PTX, since this TensorFlow was built with CUDA 12.2",
)


@pytest.mark.parametrize("capability", [(5, 0), (6, 1), (7, 5), (8, 0), (8, 6), (8, 9), None, (3, 7)])
def test_nothing_is_said_of_gpus_that_the_wheel_has_code_for(capability):
    """Nor of one that is too old, which TensorFlow does not list."""
    assert build.compile_warning(capability, WHEEL, {}) is None


@pytest.mark.parametrize("capability", [(6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (5, 2)])
def test_tensorflow_2_21_has_code_for_gpus_up_to_hopper(capability):
    """5.2 is too old for it, which `devices` says."""
    assert build.compile_warning(capability, WHEEL_2_21, {}) is None


@pytest.mark.parametrize("capability", [(10, 0), (12, 0)])
def test_blackwell_may_fail_with_tensorflow_2_21(capability):
    said = build.compile_warning(capability, WHEEL_2_21, {})
    assert said.startswith("its compute capability {}.{} is newer than this TensorFlow 2.21.0".format(*capability))
    assert "may fail with CUDA_ERROR_INVALID_PTX, since this TensorFlow was built with CUDA 12.5.1" in said
    assert said.endswith("--visible_gpus=none computes on the CPU")


@pytest.mark.parametrize(("capability", "doubtful"), [((9, 0), False), ((10, 0), True), ((12, 0), True)])
def test_a_newer_gpu_compiles_at_its_first_start(capability, doubtful):
    said = build.compile_warning(capability, WHEEL, {})
    assert said.startswith("its compute capability {}.{} is newer than this TensorFlow 2.15.1".format(*capability))
    assert SLOW in said
    assert (DOUBTFUL in said) == doubtful


def test_without_source_nothing_can_be_compiled():
    built = Build("2.15.1", True, "12.2", "8", ("sm_50", "sm_80"))
    assert "no code for it: expect errors" in build.compile_warning((9, 0), built, {})


@pytest.mark.parametrize(("cuda", "doubtful"), [("12.2", True), ("12.8", False), ("11.2", True), (None, True)])
def test_the_libraries_may_be_newer_than_the_wheel(cuda, doubtful):
    said = build.compile_warning((12, 0), Build("2.15.1", True, cuda, "8", ("compute_80",)), {})
    assert ("may fail" in said) == doubtful


def test_a_wheel_that_is_built_for_a_gpu_decides():
    assert build.compile_warning((9, 0), Build("2.15.1", True, "12.2", "8", ("sm_80", "compute_90")), {}) is None


def test_without_a_cache_every_start_compiles():
    said = build.compile_warning((9, 0), WHEEL, {"CUDA_CACHE_DISABLE": "1"})
    assert "at each start, since CUDA_CACHE_DISABLE is set" in said
    assert SLOW in build.compile_warning((9, 0), WHEEL, {"CUDA_CACHE_DISABLE": "0"})


def test_the_wheel_that_is_installed_has_code_for_the_cards_of_its_time():
    installed = build.installed()
    wheel = WHEEL if installed.version.startswith("2.15.") else WHEEL_2_21
    assert all(installed.has_code_for(capability) for capability in [(6, 1), (7, 5), (8, 6)])
    assert installed.has_source_for((9, 0))
    assert installed.has_code_for((9, 0)) == wheel.has_code_for((9, 0))
    assert not installed.has_code_for((12, 0))


@pytest.mark.parametrize(("before", "after"), [(None, str(2 << 30)), ("123", "123")])
def test_there_is_room_for_what_is_compiled_before_tensorflow_starts(tmp_path, monkeypatch, caplog, before, after):
    fake, order = FakeMachine(tmp_path, monkeypatch), []
    fake.built(WHEEL)
    fake.tensorflow_sees({"device_name": "NVIDIA H100", "compute_capability": (9, 0)}, {"compute_capability": (8, 0)})
    fake.accepts_settings()
    monkeypatch.setenv(build.CACHE_SIZE, before or "")
    if before is None:
        monkeypatch.delenv(build.CACHE_SIZE)

    def configure(*_):
        order.append(os.environ[build.CACHE_SIZE])
        return ("/device:GPU:0", "/device:GPU:1")

    monkeypatch.setattr(machine.devices, "configure", configure)
    machine.plan(DeviceSettings(), environment={})
    assert order == [after]
    (record,) = caplog.records
    assert record.getMessage().startswith("NVIDIA H100: its compute capability 9.0 is newer")
