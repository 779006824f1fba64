"""The devices command: its line, its two forms of a report, and one real run."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from bert_tf.commands import devices
from bert_tf.errors import DeviceError, FlagError
from bert_tf.jobs import devices as job
from bert_tf.runtime import machine
from bert_tf.runtime.build import Build
from bert_tf.runtime.diagnosis import Cause
from bert_tf.runtime.inventory import Inventory, LogicalDevice, PhysicalDevice, UnusableGpu
from bert_tf.runtime.settings import DeviceSettings
from tests import processes

LAPTOP = job.Report(
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
    choice=job.Choice("one_device", ("/device:GPU:0",), 1),
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
    assert job.describe(LAPTOP) == PRINTED


def test_what_there_is_not_is_not_printed():
    bare = Inventory(Build("2.15.1", False), None, 1, 1, (), (LogicalDevice("/device:CPU:0"),), ())
    choice = job.Choice("mirrored", ("/device:CPU:0", "/device:CPU:1"), 2)
    printed = job.describe(job.Report(bare, {}, choice))
    assert printed.startswith("TensorFlow 2.15.1, built without CUDA\nCPU cores  1 granted, 1 present\n")
    assert "GPU" not in printed
    assert "environment" not in printed
    assert printed.endswith("strategy mirrored, 2 replicas on /device:CPU:0, /device:CPU:1\n")


def test_a_machine_without_gpu_says_why():
    causes = (Cause("no_driver", "no NVIDIA driver", "install it"), Cause("hidden_by_flags", "left out", "name it"))
    bare = Inventory(Build("2.15.1", False), None, 1, 1, (), (), (), causes)
    report = job.Report(bare, {}, job.Choice("one_device", ("/device:CPU:0",), 1))
    assert "no GPU is used\n  no NVIDIA driver\n    -> install it\n  left out\n    -> name it\n" in job.describe(report)
    assert [cause["code"] for cause in json.loads(job.as_json(report))["no_gpu"]] == ["no_driver", "hidden_by_flags"]


@pytest.mark.parametrize(
    ("flags", "none"),
    [
        (["--visible_gpus=none"], True),
        (["--visible_gpus= None"], True),
        (["--num_gpus=0"], True),
        (["--device=/CPU:0"], True),
        (["--device=/device:cpu:0"], True),
        (["--device=/GPU:0"], False),
        (["--visible_gpus=0"], False),
        (["--place=embeddings:/CPU:0"], False),  # the rest is where TensorFlow chooses
        ([], False),
    ],
)
def test_flags_that_leave_every_gpu_out(flags, none):
    assert devices.parse(["devices", *flags]).devices.asks_for_cpu == none


def test_json_says_the_same():
    found = json.loads(job.as_json(LAPTOP))
    assert found.pop("environment") == {"CUDA_VISIBLE_DEVICES": "0"}
    assert found.pop("choice") == {"strategy": "one_device", "devices": ["/device:GPU:0"], "replicas": 1}
    assert found.pop("native_kernels") == "none: no C++ compiler"
    assert found.keys() == {field.name for field in dataclasses.fields(Inventory)}
    assert found["physical_devices"][1]["memory_free_mb"] == 40000
    assert found["unusable_gpus"][0]["causes"][0]["reason"] == "cannot load libcudnn.so.8"


def test_flags_become_settings():
    settings = devices.parse(["devices", "--num_gpus=2", "--strategy=mirrored", "--json"])
    assert settings == devices.Settings(DeviceSettings(num_gpus=2, strategy="mirrored"), json=True)
    assert devices.parse(["devices"]) == devices.Settings(DeviceSettings(), json=False)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--strategy=miror", "--strategy: unknown value 'miror'; did you mean mirrored?"),
        ("--virtual_devices=0", "virtual_devices"),
        ("--train_batch_size=8", "--help lists all flags"),
        ("json", "unexpected argument 'json'"),
    ],
)
def test_an_unusable_flag_is_one_line(argument, message, capsys):
    with pytest.raises(FlagError) as caught:
        devices.parse(["devices", argument])
    assert message in str(caught.value)
    assert devices.main(["devices", argument]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


def test_devices_that_cannot_be_set_up_are_one_line(monkeypatch, capsys):
    def refuse(*_, **__):
        raise DeviceError("--visible_gpus=7:\nthere is no such GPU")

    monkeypatch.setattr(machine, "plan", refuse)
    assert devices.main(["devices", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.err == "error: --visible_gpus=7: there is no such GPU\n"
    assert captured.out == ""


def test_help_names_every_flag_without_tensorflow():
    code = "import sys; from bert_tf.commands import devices as d; d.main(['d', '--help']); print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(row.name in done.stdout for row in (*devices.FLAGS, *devices.DEVICES))
    assert done.stdout.splitlines()[-1] == "False"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command without GPUs, so that there is a CPU to split."""
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "TF_CPP_MIN_LOG_LEVEL")}
    environment = {**kept, "CUDA_VISIBLE_DEVICES": "-1", **environment}
    done = processes.run(["-m", "bert_tf", "devices", *arguments], environment=environment)
    done.check_returncode()
    return done


def test_this_machine_with_two_virtual_devices():
    done = run("--json", "--virtual_devices=2")
    found = json.loads(done.stdout)
    assert done.stderr == ""
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
    ("flags", "used"),
    [
        (["--virtual_devices=2", "--device=/CPU:1"], ["/device:CPU:1"]),
        (["--virtual_devices=2", "--place=embeddings:/CPU:1,encoder:/CPU:0"], ["/device:CPU:1", "/device:CPU:0"]),
    ],
)
def test_placement_is_part_of_the_choice(flags, used):
    choice = json.loads(run("--json", *flags).stdout)["choice"]
    assert choice == {"strategy": "one_device", "devices": used, "replicas": 1}


def test_a_device_that_does_not_exist_is_one_line():
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("--device=/GPU:7")
    assert caught.value.returncode == 2
    assert caught.value.stderr.splitlines()[-1] == "error: there is no device /GPU:7, only /CPU:0"
