"""The list of devices where TensorFlow cannot set a GPU up."""

from __future__ import annotations

import json

import pytest

from bert_tf.commands import devices
from bert_tf.runtime import inventory, machine, nvidia
from tests.runtime.fake_machine import CUDA_12, DRIVER, SMI_RTX, FakeMachine


@pytest.fixture(autouse=True)
def _broken(tmp_path, monkeypatch):
    fake = FakeMachine(tmp_path, monkeypatch)
    fake.smi(*SMI_RTX)
    fake.loads([DRIVER, *CUDA_12])

    def fail(*_, **__):
        raise RuntimeError("cudaGetDevice() failed. Status: initialization error")

    monkeypatch.setattr(machine, "plan", fail)
    monkeypatch.setattr(inventory.tf.config, "list_physical_devices", fail)
    monkeypatch.setattr(nvidia, "other_processes", tuple)


def test_the_rest_is_listed_and_the_failure_is_one_line(capsys):
    assert devices.main(["devices"]) == 2
    said = capsys.readouterr()
    assert "GPUs that TensorFlow does not use" in said.out
    assert "with these flags" not in said.out
    (line,) = said.err.splitlines()
    assert line.startswith("error: GPU: cudaGetDevice() failed. Status: initialization error: its driver")


def test_programs_read_no_choice(capsys):
    assert devices.main(["devices", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["choice"] is None
    assert len(found["unusable_gpus"]) == 2


def test_another_failure_is_not_swallowed(monkeypatch, capsys, tmp_path):
    def fail(*_, **__):
        raise RuntimeError("a defect")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(machine, "plan", fail)
    assert devices.main(["devices"]) == 70
    assert capsys.readouterr().out == ""
