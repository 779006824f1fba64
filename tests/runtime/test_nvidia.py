"""Which GPUs there are, on machines made of a few files."""

import ctypes
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest
import tensorflow as tf

from bert_tf.runtime import nvidia
from bert_tf.runtime.nvidia import Gpu, System
from tests.runtime.fake_machine import RTX, SMI_RTX, FakeMachine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return FakeMachine(tmp_path, monkeypatch)


def test_a_machine_without_gpu(machine, monkeypatch):
    machine.pci("0000:00:02.0", vendor="0x8086")
    machine.pci("0000:03:00.0", kind="0x040300")  # NVIDIA's sound
    assert nvidia.survey() == System()
    for name in ("_PCI", "_DRIVER", "_DEVICES"):
        monkeypatch.setattr(nvidia, name, Path("/nowhere"))
    assert nvidia.survey() == System()
    assert nvidia.forbidden_files() == ()


def test_nvidia_smi_knows_most_of_most_gpus(machine):
    machine.smi(*SMI_RTX)
    system = nvidia.survey()
    assert system.gpus[0] == Gpu("0000:01:00.0", RTX, 0, "GPU-aaaa1111", 6144, 5900, "8.6")
    assert (len(system.offered), system.driver_version, system.driver_problem) == (2, "535.183.01", None)
    machine.smi("0, NVIDIA GB10, GPU-1, 0000000F:01:00.0, [N/A], [Unknown Error], 580.95, [N/A]")
    assert nvidia.survey().gpus == (Gpu("000f:01:00.0", "NVIDIA GB10", 0, "GPU-1"),)
    machine.smi("Unable to determine the device handle for GPU 0000:02:00.0: Unknown Error", SMI_RTX[0], status=15)
    assert [gpu.number for gpu in nvidia.survey().gpus] == [0]  # one that does not answer hides no other


def test_each_gpu_is_counted_once(machine):
    machine.smi(SMI_RTX[0])
    for address in ("0000:01:00.0", "0000:02:00.0"):
        machine.pci(address, kind="0x030200")
        machine.driver(address, RTX)
    system = nvidia.survey()
    assert [str(gpu) for gpu in system.gpus] == [f"{RTX} at 0000:01:00.0", f"{RTX} at 0000:02:00.0"]
    assert [gpu.number for gpu in system.gpus] == [0, None]


def test_an_old_driver_knows_no_compute_capability(machine):
    refuse = 'case "$*" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\'; exit 2;; esac'
    machine.smi("0, GeForce GTX 1080, GPU-1, 00000000:01:00.0, 8119, 8000, 470.182.03", before=refuse)
    system = nvidia.survey()
    assert (system.gpus[0].model, system.gpus[0].compute_capability) == ("GeForce GTX 1080", None)
    assert (system.driver_version, system.driver_problem) == ("470.182.03", None)


@pytest.mark.parametrize(
    ("lines", "status", "problem"),
    [
        (["Failed to initialize NVML: Driver/library version mismatch"], 18, "Driver/library version mismatch"),
        (["No devices were found"], 6, "No devices were found"),
        ([], 1, "nvidia-smi: no answer"),
        ([], 0, "nvidia-smi: no answer"),
    ],
)
def test_what_nvidia_smi_complains_of(machine, lines, status, problem):
    machine.smi(*lines, status=status)
    system = nvidia.survey()
    assert system.gpus == ()
    assert problem in system.driver_problem


def test_an_nvidia_smi_that_hangs_or_cannot_be_run(machine, monkeypatch):
    machine.smi()
    (machine.folder / "bin/nvidia-smi").write_bytes(b"\x7fELF no program")
    assert nvidia.survey().driver_problem.startswith("nvidia-smi: ")
    monkeypatch.setattr(subprocess, "run", mock.Mock(side_effect=subprocess.TimeoutExpired("nvidia-smi", 30)))
    assert "timed out after 30 seconds" in nvidia.survey().driver_problem


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1", [1]),
        ("2, 0", [2, 0]),
        ("0,-1,1", [0]),
        ("0,7,1", [0]),
        ("GPU-bb", [1]),
        ("GPU-none,0", []),
        ("MIG-aaaa", [0, 1, 2]),
    ],
)
def test_cuda_visible_devices(text, numbers):
    gpus = [Gpu(number=number, uuid=f"GPU-{letter * 4}") for number, letter in enumerate("abc")]
    assert [gpu.number for gpu in nvidia.listed(gpus, text)] == numbers


def test_libraries_are_looked_for_where_wheels_put_them(tmp_path):
    wheel = tmp_path / "nvidia/cudnn/lib"
    wheel.mkdir(parents=True)
    (wheel / "libcudnn.so.8").symlink_to(Path(tf.__file__).parent / "libtensorflow_framework.so.2")  # one that surely loads
    (wheel / "libdamaged.so.1").write_text("half a download")
    missing = nvidia.not_loaded(["libcudnn.so.8", "libnowhere.so.9", "libdamaged.so.1"], os.fspath(tmp_path / "tensorflow"))
    assert missing[0] == "libnowhere.so.9"
    assert missing[1].startswith(f"libdamaged.so.1 ({wheel}/libdamaged.so.1: ")
    assert len(missing) == 2


def test_a_library_that_lacks_another_names_it(monkeypatch):
    missing = OSError("libnvJitLink.so.12: cannot open shared object file: No such file or directory")
    monkeypatch.setattr(ctypes, "CDLL", mock.Mock(side_effect=missing))
    (problem,) = nvidia.not_loaded(["libcusparse.so.12"], "/nowhere")
    assert problem.startswith("libcusparse.so.12 (libnvJitLink.so.12: cannot open")
