"""The list of devices: its two forms, real runs, and a GPU that TensorFlow cannot set up."""

import dataclasses
import json
import os

import pytest

from bert_tf.errors import DeviceError
from bert_tf.extensions.devices.command import Choice, Report, as_json
from bert_tf.runtime import inventory, machine, nvidia
from bert_tf.runtime.diagnosis import Build, Cause
from bert_tf.runtime.inventory import Inventory, LogicalDevice, PhysicalDevice, UnusableGpu
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import read_settings
from tests import processes
from tests.runtime.fake_machine import CUDA_12, DRIVER, SMI_RTX, FakeMachine

CAUSE = Cause("no_cuda_libraries", "cannot load libcudnn.so.8", "pip install the wheels")
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
        unusable_gpus=(UnusableGpu("NVIDIA T400 at 0000:02:00.0", (CAUSE,)),),
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


def test_the_report_for_people_and_for_programs_says_why_there_is_no_gpu():
    assert str(LAPTOP) == PRINTED
    printed = json.loads(as_json(LAPTOP))
    assert printed.pop("environment") == {"CUDA_VISIBLE_DEVICES": "0"}
    assert printed.pop("choice") == {"strategy": "one_device", "devices": ["/device:GPU:0"], "replicas": 1}
    assert printed.pop("native_kernels") == "none: no C++ compiler"
    assert printed.keys() == {field.name for field in dataclasses.fields(Inventory)}
    assert printed["physical_devices"][1]["memory_free_mb"] == 40000
    assert printed["unusable_gpus"][0]["causes"][0]["reason"] == "cannot load libcudnn.so.8"
    head = "TensorFlow 2.15.1, built without CUDA\nCPU cores  1 granted, 1 present\n"
    end = "with these flags: strategy mirrored, 2 replicas on /device:CPU:0, /device:CPU:1\n"
    said = "no GPU is used\n  cannot load libcudnn.so.8\n    -> pip install the wheels\n\n"
    for causes in ((), (CAUSE,)):
        bare = Inventory(Build("2.15.1", False), None, 1, 1, (), (LogicalDevice("/device:CPU:0"),), (), causes)
        report = str(Report(bare, {}, Choice("mirrored", ("/device:CPU:0", "/device:CPU:1"), 2)))
        assert report.startswith(head)
        assert report.endswith(f"/device:CPU:0   -\n\n{said if causes else ''}{end}")


ALL_OUT = [*({"visible_gpus": name} for name in ("none", " None")), {"num_gpus": 0}]
ALL_OUT += [{"device": name} for name in ("/CPU:0", "/device:cpu:0")]
SOME_IN = [{"device": "/GPU:0"}, {"visible_gpus": "0"}, {"place": "embeddings:/CPU:0"}, {}]  # TensorFlow places the rest


def test_flags_that_leave_every_gpu_out():
    assert [read_settings(DeviceSettings, flags).asks_for_cpu for flags in ALL_OUT] == [True] * len(ALL_OUT)
    assert [read_settings(DeviceSettings, flags).asks_for_cpu for flags in SOME_IN] == [False] * len(SOME_IN)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--strategy=miror", "--strategy: unknown value 'miror'; did you mean mirrored?"),
        ("--virtual_devices=0", "virtual_devices"),
        ("--train_batch_size=8", "--help=all lists all flags"),
        ("json", "unexpected argument 'json'"),
        ("--json", "error: --visible_gpus=7: there is no such GPU\n"),
    ],
)
def test_an_unusable_flag_is_one_line(argument, message, call, monkeypatch):
    monkeypatch.setattr(machine, "plan", failing(DeviceError("--visible_gpus=7:\nthere is no such GPU")))
    status, out, err = call("devices", argument)
    assert (status, out, err.count("\n"), err[:7]) == (2, "", 1, "error: ")
    assert message in err


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


CPUS = ["/device:CPU:0", "/device:CPU:1"]
PEERS = {"worker": ["127.0.0.1:23451", "127.0.0.1:23452"]}  # nobody listens


@pytest.mark.parametrize(
    ("flags", "config", "expected"),
    [
        (["--virtual_devices=2"], None, ("mirrored", CPUS, 2)),
        (["--virtual_devices=2", "--device=/CPU:1"], None, ("one_device", CPUS[1:], 1)),
        (["--virtual_devices=2", "--place=embeddings:/CPU:1,encoder:/CPU:0"], None, ("one_device", CPUS[::-1], 1)),
        ([], {"cluster": PEERS, "task": {"type": "worker", "index": 0}}, ("multi_worker", CPUS[:1], 2)),
        (["--device=/GPU:7"], None, "error: no device /GPU:7; available: /CPU:0"),
    ],
)
def test_what_this_machine_would_compute_on(flags, config, expected):
    environment = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "TF_CPP_MIN_LOG_LEVEL")}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", **({"TF_CONFIG": json.dumps(config)} if config else {})}  # CPUs can be split
    done = processes.run(["-m", "bert_tf", "devices", "--json", *flags], environment=environment)
    if isinstance(expected, str):
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, expected)
        return
    printed = json.loads(done.stdout)
    assert (done.returncode, printed["choice"]) == (0, dict(zip(("strategy", "devices", "replicas"), expected)))
    assert [device["name"] for device in printed["logical_devices"]] == CPUS[: 2 if flags else 1]
    assert [device["kind"] for device in printed["physical_devices"]] == ["CPU"]
    assert printed["environment"] == {name: environment[name] for name in printed["environment"]}
    assert {"CUDA_VISIBLE_DEVICES", *(["TF_CONFIG"] if config else [])} <= printed["environment"].keys()
    assert printed["native_kernels"]
    assert 1 <= printed["cpus_granted"] <= printed["cpus_present"]


@pytest.mark.parametrize("problem", ["cudaGetDevice() failed. Status: initialization error", "a defect"])
def test_a_gpu_that_cannot_be_set_up_is_one_line_after_the_rest(tmp_path, monkeypatch, call, problem):
    fake = FakeMachine(tmp_path, monkeypatch)
    fake.smi(*SMI_RTX)
    fake.loads([DRIVER, *CUDA_12])
    fail = failing(RuntimeError(problem))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(machine, "plan", fail)
    monkeypatch.setattr(inventory.tf.config, "list_physical_devices", fail)
    monkeypatch.setattr(nvidia, "other_processes", tuple)
    status, out, err = call("devices")
    if problem == "a defect":
        assert (status, out) == (70, "")
        return
    assert (status, err.count("\n")) == (2, 1)
    assert "GPUs that TensorFlow does not use" in out
    assert "with these flags" not in out
    assert err.startswith(f"error: GPU: {problem}: its driver")
    printed = json.loads(call("devices", "--json")[1])
    assert (printed["choice"], len(printed["unusable_gpus"])) == (None, 2)
