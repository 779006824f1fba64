"""The list of devices: its two forms, real runs, and a GPU that TensorFlow cannot set up."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess

import pytest

from bert_tf.errors import DeviceError
from bert_tf.operations.devices import Choice, Report, as_json
from bert_tf.runtime import inventory, machine, nvidia
from bert_tf.runtime.build import Build
from bert_tf.runtime.diagnosis import Cause
from bert_tf.runtime.inventory import Inventory, LogicalDevice, PhysicalDevice, UnusableGpu
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import read
from tests import processes
from tests.runtime.fake_machine import CUDA_12, DRIVER, SMI_RTX, FakeMachine

LAPTOP = Report(
    Inventory(
        tensorflow=Build("2.15.1", True, "12.2", "8", ("sm_50",), "/site/tensorflow"),
        driver_version="535.183.01",
        cpus_granted=2,
        cpus_present=8,
        physical_devices=(
            PhysicalDevice("/physical_device:CPU:0", "CPU", "AMD EPYC", 24105, 22446),
            PhysicalDevice("/physical_device:GPU:0", "GPU", "NVIDIA A100", 40960, 40000, "8.0"),
        ),
        logical_devices=(LogicalDevice("/device:CPU:0"), LogicalDevice("/device:GPU:0", 2000)),
        unusable_gpus=(
            UnusableGpu(
                "NVIDIA T400 at 0000:02:00.0",
                (Cause("no_cuda_libraries", "cannot load libcudnn.so.8", "pip install the wheels"),),
            ),
        ),
    ),
    environment={"CUDA_VISIBLE_DEVICES": "0"},
    choice=Choice("one_device", ("/device:GPU:0",), 1),
    native_kernels="none: no C++ compiler",
)
PRINTED = """\
TensorFlow 2.15.1, built for CUDA 12.2 and cuDNN 8, NVIDIA driver 535.183.01
CPU cores  2 granted, 8 present
native kernels  none: no C++ compiler

physical device         model        memory, MiB   free  compute capability
/physical_device:CPU:0  AMD EPYC           24105  22446  -
/physical_device:GPU:0  NVIDIA A100        40960  40000  8.0

logical device  memory limit, MiB
/device:CPU:0                   -
/device:GPU:0                2000

GPUs that TensorFlow does not use
  NVIDIA T400 at 0000:02:00.0
    cannot load libcudnn.so.8
      -> pip install the wheels

environment
  CUDA_VISIBLE_DEVICES=0

with these flags: strategy one_device, 1 replica on /device:GPU:0
"""


def test_the_report_for_people():
    assert str(LAPTOP) == PRINTED


def test_the_report_for_programs():
    found = json.loads(as_json(LAPTOP))
    assert found.pop("environment") == {"CUDA_VISIBLE_DEVICES": "0"}
    assert found.pop("choice") == {"strategy": "one_device", "devices": ["/device:GPU:0"], "replicas": 1}
    assert found.pop("native_kernels") == "none: no C++ compiler"
    assert found.keys() == {field.name for field in dataclasses.fields(Inventory)}
    assert found["physical_devices"][1]["memory_free_mb"] == 40000
    assert found["unusable_gpus"][0]["causes"][0]["reason"] == "cannot load libcudnn.so.8"


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ((), ""),
        (
            (Cause("no_driver", "no NVIDIA driver", "install it"), Cause("hidden_by_flags", "left out", "name it")),
            "no GPU is used\n  no NVIDIA driver\n    -> install it\n  left out\n    -> name it\n\n",
        ),
    ],
)
def test_what_is_missing_has_no_lines_and_a_machine_without_gpu_says_why(causes, said):
    bare = Inventory(Build("2.15.1", False), None, 1, 1, (), (LogicalDevice("/device:CPU:0"),), (), causes)
    report = Report(bare, {}, Choice("mirrored", ("/device:CPU:0", "/device:CPU:1"), 2))
    head = "TensorFlow 2.15.1, built without CUDA\nCPU cores  1 granted, 1 present\n"
    assert str(report).startswith(head)
    end = "with these flags: strategy mirrored, 2 replicas on /device:CPU:0, /device:CPU:1\n"
    assert str(report).endswith(f"/device:CPU:0   -\n\n{said}{end}")


@pytest.mark.parametrize(
    ("flags", "none"),
    [
        ({"visible_gpus": "none"}, True),
        ({"visible_gpus": " None"}, True),
        ({"num_gpus": 0}, True),
        ({"device": "/CPU:0"}, True),
        ({"device": "/device:cpu:0"}, True),
        ({"device": "/GPU:0"}, False),
        ({"visible_gpus": "0"}, False),
        ({"place": "embeddings:/CPU:0"}, False),  # the rest is where TensorFlow chooses
        ({}, False),
    ],
)
def test_flags_that_leave_every_gpu_out(flags, none):
    assert read(DeviceSettings, flags).asks_for_cpu == none


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--strategy=miror", "--strategy: unknown value 'miror'; did you mean mirrored?"),
        ("--virtual_devices=0", "virtual_devices"),
        ("--train_batch_size=8", "--help lists all flags"),
        ("json", "unexpected argument 'json'"),
    ],
)
def test_an_unusable_flag_is_one_line(argument, message, call):
    status, out, err = call("devices", argument)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert message in err


def test_devices_that_cannot_be_set_up_are_one_line(monkeypatch, call):
    def refuse(*_, **__):
        raise DeviceError("--visible_gpus=7:\nthere is no such GPU")

    monkeypatch.setattr(machine, "plan", refuse)
    assert call("devices", "--json") == (2, "", "error: --visible_gpus=7: there is no such GPU\n")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command without GPUs, so that there is a CPU to split."""
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "TF_CPP_MIN_LOG_LEVEL")}
    environment = {**kept, "CUDA_VISIBLE_DEVICES": "-1", **environment}
    return processes.run(["-m", "bert_tf", "devices", *arguments], environment=environment)


def test_this_machine_with_two_virtual_devices():
    done = run("--json", "--virtual_devices=2")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert found["choice"] == {"strategy": "mirrored", "devices": ["/device:CPU:0", "/device:CPU:1"], "replicas": 2}
    assert [device["name"] for device in found["logical_devices"]] == ["/device:CPU:0", "/device:CPU:1"]
    assert [device["kind"] for device in found["physical_devices"]] == ["CPU"]
    assert found["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"
    assert found["native_kernels"]
    assert 1 <= found["cpus_granted"] <= found["cpus_present"]


def test_a_job_of_two_machines_is_not_waited_for():
    workers = ["127.0.0.1:23451", "127.0.0.1:23452"]  # nobody listens
    config = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}})
    found = json.loads(run("--json", TF_CONFIG=config).stdout)
    assert found["choice"] == {"strategy": "multi_worker", "devices": ["/device:CPU:0"], "replicas": 2}
    assert found["environment"]["TF_CONFIG"] == config


@pytest.mark.parametrize(
    ("flag", "used"),
    [
        ("--device=/CPU:1", ["/device:CPU:1"]),
        ("--place=embeddings:/CPU:1,encoder:/CPU:0", ["/device:CPU:1", "/device:CPU:0"]),
    ],
)
def test_placement_is_part_of_the_choice(flag, used):
    choice = json.loads(run("--json", "--virtual_devices=2", flag).stdout)["choice"]
    assert choice == {"strategy": "one_device", "devices": used, "replicas": 1}


def test_a_device_that_does_not_exist_is_one_line():
    done = run("--device=/GPU:7")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: there is no device /GPU:7, only /CPU:0"


@pytest.fixture
def _broken(tmp_path, monkeypatch):
    """TensorFlow cannot set a GPU up."""
    fake = FakeMachine(tmp_path, monkeypatch)
    fake.smi(*SMI_RTX)
    fake.loads([DRIVER, *CUDA_12])

    def fail(*_, **__):
        raise RuntimeError("cudaGetDevice() failed. Status: initialization error")

    monkeypatch.setattr(machine, "plan", fail)
    monkeypatch.setattr(inventory.tf.config, "list_physical_devices", fail)
    monkeypatch.setattr(nvidia, "other_processes", tuple)


@pytest.mark.usefixtures("_broken")
def test_the_rest_is_listed_and_the_failure_is_one_line(call):
    status, out, err = call("devices")
    assert status == 2
    assert "GPUs that TensorFlow does not use" in out
    assert "with these flags" not in out
    (line,) = err.splitlines()
    assert line.startswith("error: GPU: cudaGetDevice() failed. Status: initialization error: its driver")
    found = json.loads(call("devices", "--json")[1])
    assert (found["choice"], len(found["unusable_gpus"])) == (None, 2)


@pytest.mark.usefixtures("_broken")
def test_another_failure_is_not_swallowed(monkeypatch, call, tmp_path):
    def fail(*_, **__):
        raise RuntimeError("a defect")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(machine, "plan", fail)
    assert call("devices")[:2] == (70, "")
