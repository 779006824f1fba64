"""What there is, why TensorFlow does not use a GPU, and what cuInit answers, on machines made of a few files."""

import ctypes
import dataclasses
import json
import os
import shlex
import sys
from types import SimpleNamespace
from unittest import mock

import pytest
import tensorflow as tf

from bert_tf.extensions.devices import command as devices
from bert_tf.runtime import diagnosis, inventory, nvidia
from bert_tf.runtime.diagnosis import Build
from tests.runtime.fake_machine import CUDA_12, DRIVER, RTX, SMI_RTX, FakeMachine

WHEEL_2_21 = Build("2.21.0", True, "12.5.1", "9", ("sm_60", "sm_70", "sm_80", "sm_89", "compute_90"))
A100 = {"device_name": "NVIDIA A100", "compute_capability": (8, 0)}
ADVICE = f"{shlex.quote(sys.executable)} -m pip install 'tensorflow[and-cuda]==2.15.1'"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return FakeMachine(tmp_path, monkeypatch)


@pytest.fixture
def laptop(machine):
    """Two GPUs whose driver runs, and Intel's; TensorFlow finds all libraries but cuDNN."""
    machine.smi(*SMI_RTX)
    machine.pci("0000:00:02.0", vendor="0x8086")
    for address in ("0000:01:00.0", "0000:02:00.0"):
        machine.pci(address)
        machine.driver(address, RTX)
    machine.loads([DRIVER, *CUDA_12[:-1]])
    return machine


def take() -> inventory.Inventory:
    return inventory.take(nvidia.survey(), os.environ)


def reasons(taken: inventory.Inventory) -> list[list[str]]:
    return [[cause.reason for cause in gpu.causes] for gpu in taken.unusable_gpus]


def test_a_machine_without_gpu(machine):
    machine.write("cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n")
    machine.memory(2000, 1000)
    taken = take()
    assert taken.physical_devices == (inventory.PhysicalDevice("/physical_device:CPU:0", "CPU", "AMD EPYC", 2000, 1000),)
    assert taken.logical_devices == (inventory.LogicalDevice("/device:CPU:0"),)
    assert taken.unusable_gpus == ()
    assert diagnosis.unused_gpu_warning() is None


def test_a_container_has_what_it_is_granted(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    machine.memory(2000, 1500)
    machine.write("cgroup/cpu.max", "150000 100000\n")
    machine.write("cgroup/memory.current", "104857600")
    for limit, memory in (("1048576000", (1000, 900)), ("9223372036854771712", (2000, 1500))):
        machine.write("cgroup/memory.max", limit)
        (cpu,) = take().physical_devices
        assert (cpu.memory_total_mb, cpu.memory_free_mb) == memory
    assert (take().cpus_granted, take().cpus_present) == (2, 64)


def test_tensorflow_and_the_driver_each_know_a_part_of_a_gpu(laptop):
    laptop.tensorflow_sees({"device_name": RTX}, {})
    gpus = take().physical_devices[1:]
    assert [(gpu.model, gpu.memory_free_mb) for gpu in gpus] == [(RTX, 5900), (RTX, 6000)]
    assert gpus[1].compute_capability == "8.6"
    assert take().unusable_gpus == ()


def test_gpus_of_different_models_are_told_apart(machine):
    machine.smi(
        "0, NVIDIA T400, GPU-1, 00000000:01:00.0, 2048, 2000, 535.1, 7.5",
        "1, NVIDIA A100, GPU-2, 00000000:02:00.0, 40960, 40000, 535.1, 8.0",
    )
    machine.tensorflow_sees(A100)  # the fastest first; the other has too few processors
    taken = take()
    assert (taken.physical_devices[1].memory_total_mb, taken.physical_devices[1].compute_capability) == (40960, "8.0")
    assert reasons(taken) == [["TensorFlow does not list it"]]


@pytest.mark.parametrize(("listed", "free"), [("1,0", [6000, 5900]), ("1", [6000]), ("GPU-bbbb", [6000])])
def test_cuda_visible_devices_decides_which_gpu_is_which(laptop, monkeypatch, listed, free):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    laptop.tensorflow_sees(*[{"device_name": RTX}] * len(free))
    assert [gpu.memory_free_mb for gpu in take().physical_devices[1:]] == free


def test_limits_of_logical_devices(laptop):
    laptop.tensorflow_sees({}, {}, visible=[1])
    laptop.splits({"/physical_device:GPU:1": [1000, 2000]})
    assert [(device.name, device.memory_limit_mb) for device in take().logical_devices] == [
        ("/device:CPU:0", None),
        ("/device:GPU:0", 1000),
        ("/device:GPU:1", 2000),
    ]


@pytest.mark.usefixtures("laptop")
def test_a_laptop_without_cudnn(monkeypatch):
    assert reasons(take()) == [["cannot load libcudnn.so.8"]] * 2
    assert diagnosis.unused_gpu_warning() == (
        f"computing on the CPU, although there is {RTX} at 0000:01:00.0, {RTX} at 0000:02:00.0: cannot load libcudnn.so.8."
        f" To use it: {ADVICE}"
    )
    plain = dataclasses.asdict(take())
    cause = {"code": "no_cuda_libraries", "reason": "cannot load libcudnn.so.8", "remedy": ADVICE}
    assert plain["unusable_gpus"][0]["causes"] == (cause,)
    assert plain["no_gpu"] == (cause,)  # once, though two GPUs have it
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert reasons(take())[0] == ["hidden by CUDA_VISIBLE_DEVICES=''", "cannot load libcudnn.so.8"]  # all causes at once


@pytest.mark.usefixtures("laptop")
def test_a_driver_that_breaks_tensorflow(monkeypatch):
    error = RuntimeError("cudaGetDevice() failed. Status: initialization error")
    for name in ("list_physical_devices", "get_visible_devices", "list_logical_devices"):
        monkeypatch.setattr(tf.config, name, mock.Mock(side_effect=error))
    assert take().physical_devices == ()
    assert "cannot load libcudnn.so.8" in diagnosis.unused_gpu_warning()


@pytest.mark.parametrize(("value", "hidden"), [("", 2), ("-1", 2), ("0", 1), ("1", 1)])
def test_hidden_by_cuda_visible_devices(laptop, monkeypatch, value, hidden):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    laptop.loads([DRIVER, *CUDA_12])
    laptop.tensorflow_sees(*[{"device_name": RTX}] * (2 - hidden))
    taken = take()
    assert reasons(taken) == [[f"hidden by CUDA_VISIBLE_DEVICES={value!r}"]] * hidden
    if hidden == 1:
        assert taken.unusable_gpus[0].name.endswith("0000:01:00.0" if value == "1" else "0000:02:00.0")
    else:
        said = f"hidden by CUDA_VISIBLE_DEVICES={value!r}. To use it: unset CUDA_VISIBLE_DEVICES"
        assert said in diagnosis.unused_gpu_warning()


@pytest.mark.parametrize("visible", [[1], []])
def test_left_out_by_a_flag(laptop, visible):
    laptop.tensorflow_sees({}, {}, visible=visible)
    gpus = take().unusable_gpus
    assert len(gpus) == 2 - len(visible)
    assert gpus[0].name == f"{RTX} at 0000:01:00.0"
    assert gpus[0].causes[0].reason.startswith("left out by --visible_gpus, --num_gpus")
    assert diagnosis.unused_gpu_warning() is None


NO_CUDA, CUDA_13 = Build("2.15.1", False), Build("2.15.0", True, "13.1", "9")


@pytest.mark.parametrize(
    ("built", "libraries", "reason"),
    [
        (None, [DRIVER], f"cannot load {', '.join(CUDA_12)}"),
        (CUDA_13, [DRIVER], "TensorFlow does not list it"),  # libraries of another CUDA are not guessed at
        (NO_CUDA, [DRIVER, *CUDA_12], "this TensorFlow is built without CUDA"),
        (WHEEL_2_21, [DRIVER, *CUDA_12], "cannot load libcudnn.so.9"),
    ],
)
def test_libraries_of_the_build(laptop, built, libraries, reason):
    if built:
        laptop.built(built)
    laptop.loads(libraries)
    assert reasons(take())[0] == [reason]
    if built is NO_CUDA:
        assert diagnosis.unused_gpu_warning().endswith(ADVICE)


def test_a_container_without_driver(machine):
    machine.pci("0000:01:00.0")
    machine.loads(CUDA_12)
    assert reasons(take()) == [["no NVIDIA driver: cannot load libcuda.so.1", "no /dev/nvidiactl"]]
    warning = diagnosis.unused_gpu_warning()
    assert "NVIDIA GPU at 0000:01:00.0" in warning
    assert "start the container with --gpus all" in warning


def test_a_driver_that_was_updated_and_not_started_again(machine):
    machine.driver("0000:01:00.0", RTX)
    machine.smi("Failed to initialize NVML: Driver/library version mismatch", "NVML library version: 535.183", status=18)
    machine.loads([DRIVER, *CUDA_12])
    ((reason,),) = reasons(take())
    assert reason.startswith("nvidia-smi: Failed to initialize NVML: Driver/library version mismatch")
    assert len(diagnosis.unused_gpu_warning().splitlines()) == 1


OLD_DRIVER = "0, NVIDIA A100, GPU-1, 00000000:01:00.0, 40960, 40000, 470.82.01, 8.0"
K80 = "0, Tesla K80, GPU-1, 00000000:01:00.0, 11441, 11000, 525.1, 3.7"
GTX_970 = "0, NVIDIA GeForce GTX 970, GPU-1, 00000000:01:00.0, 4096, 4000, 550.54, 5.2"
OLD_GPU = "its compute capability is {}, TensorFlow {} needs {} or higher"


@pytest.mark.parametrize(
    ("line", "built", "reason", "remedy"),
    [
        (OLD_DRIVER, None, "the driver is 470.82.01, CUDA 12.2 needs 525 or newer", "install driver 525"),
        (K80, None, OLD_GPU.format("3.7", "2.15.1", "5.0"), "use a newer GPU"),
        (K80, WHEEL_2_21, OLD_GPU.format("3.7", "2.21.0", "6.0"), "use a newer GPU"),
        (GTX_970, WHEEL_2_21, OLD_GPU.format("5.2", "2.21.0", "6.0"), "use TensorFlow 2.15, which"),
    ],
)
def test_a_gpu_or_driver_that_is_too_old(machine, line, built, reason, remedy):
    if built:
        machine.built(built)
    machine.smi(line)
    machine.loads([DRIVER, *CUDA_12, "libcudnn.so.9"])
    assert reasons(take()) == [[reason]]
    assert take().unusable_gpus[0].causes[0].remedy.startswith(remedy)


def test_no_permission(laptop, monkeypatch):
    laptop.write("dev/nvidia0", "")
    laptop.loads([DRIVER, *CUDA_12])
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("nvidia0"))
    assert reasons(take())[0] == [f"no permission to use {laptop.folder}/dev/nvidia0"]


def test_a_gpu_of_the_host_that_the_container_was_not_given(machine):
    machine.smi(SMI_RTX[0])
    machine.pci("0000:02:00.0")
    machine.tensorflow_sees({"device_name": RTX})
    assert reasons(take()) == [["nvidia-smi does not list it"]]


def codes(**given) -> list[str]:
    return [cause.code for cause in inventory.take(nvidia.survey(), os.environ, **given).no_gpu]


def test_no_gpu_and_no_driver(machine):
    assert codes() == ["no_gpu_found", "no_driver"]
    assert codes(left_out=True)[0] == "hidden_by_flags"
    machine.loads([DRIVER])
    assert codes() == ["no_gpu_found", "driver_not_running"]
    machine.write("dev/nvidiactl", "")
    assert codes() == ["no_gpu_found", "no_cuda_libraries"]
    machine.loads([DRIVER, *CUDA_12])
    assert codes() == ["no_gpu_found"]


@pytest.mark.parametrize(("value", "hides"), [("", True), ("-1", True), (" -1,0", True), ("0", False), ("GPU-aa", False)])
@pytest.mark.usefixtures("machine")
def test_a_variable_that_hides_every_gpu_is_named_where_none_is_known(monkeypatch, value, hides):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert ("hidden_by_environment" in codes()) == hides


def test_flags_that_leave_out_gpus_are_named_first(laptop):
    laptop.tensorflow_sees({}, {}, visible=[])
    assert codes(left_out=True) == ["hidden_by_flags"]
    laptop.tensorflow_sees({"device_name": RTX})  # a GPU that is used needs no reason
    assert codes() == []


def test_an_old_driver_without_nvidia_smi(machine):
    machine.driver("0000:01:00.0", RTX)
    machine.write("version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed Oct 27 21:21:55 UTC 2021\n")
    machine.loads([DRIVER, *CUDA_12])
    assert codes() == ["driver_too_old"]


@pytest.fixture
def answers(machine, monkeypatch):
    """Says what cuInit answers, on a machine with a GPU whose driver and libraries are there."""
    machine.smi(*SMI_RTX[:1])
    machine.loads([DRIVER, *CUDA_12])

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
        (100, "CUDA_ERROR_NO_DEVICE", "no GPU is visible", "--gpus all"),
        (711, "error 711", "no reason is known", "CUresult 711"),
    ],
)
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


def test_a_driver_that_starts_is_no_cause(answers):
    answers(0)
    assert "cuInit" not in str(report())
    assert json.loads(devices.as_json(report()))["driver_status"] == 0


@pytest.mark.parametrize(
    ("value", "code"),
    [("-1", "hidden_by_environment"), *((shown, "driver_does_not_start") for shown in ("MIG-1111", "0", "GPU-aaaa"))],
)
def test_a_hidden_gpu_is_no_fault_of_the_driver_but_a_shown_one_is(answers, value, code):
    """A part of a GPU (MIG) counts as shown: which belong to which is unknown."""
    answers(100)
    (gpu,) = report({"CUDA_VISIBLE_DEVICES": value}).inventory.unusable_gpus
    assert [cause.code for cause in gpu.causes] == [code]
    assert "CUDA_VISIBLE_DEVICES" in gpu.causes[0].remedy


def test_without_a_driver_nothing_is_asked(machine, monkeypatch):
    machine.loads()
    assert nvidia.status() is None
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert nvidia.status() is None
