from __future__ import annotations

import sys

import pytest

from benchmarks.comparisons import OTHER
from benchmarks.workers import Environments, WorkerError, variables


def test_peers_that_are_not_wanted_are_missing():
    found = Environments.found({}, peers=False)
    assert {found.missing.pop(OTHER), *found.missing.values()} == {"--other_python was not given", "--peers was not given"}
    assert found.command("bert_tf", "w.json") == (sys.executable, "-m", "benchmarks.worker", "w.json")


def test_another_environment_runs_the_same_worker():
    found = Environments.found({}, peers=False, other="/other/python")
    assert found.command(OTHER, "w.json") == ("/other/python", "-m", "benchmarks.worker", "w.json")
    assert variables(OTHER, 2)["PYTHONPATH"]


def test_a_peer_without_an_environment_is_told_how_to_get_one(tmp_path):
    found = Environments.found({}, peers=True, project=tmp_path)
    assert found.missing["keras_hub"] == "no .peers/keras_hub/bin/python; `make benchmark-env` makes it"
    with pytest.raises(WorkerError, match="make benchmark-env"):
        found.command("keras_hub", tmp_path)


def test_an_interpreter_can_be_named(tmp_path):
    found = Environments.found({"transformers": sys.executable}, peers=True, project=tmp_path)
    python, script, path = found.command("transformers", tmp_path / "w.json")
    assert python == sys.executable
    assert script.endswith("benchmarks/peers/transformers_trainer.py")
    assert path == str(tmp_path / "w.json")


def test_peers_do_not_find_this_package(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert "PYTHONPATH" not in variables("transformers", 2)
    assert variables("bert_tf", 2)["PYTHONPATH"]


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"])
def test_every_library_gets_as_many_threads(name):
    assert variables("transformers", 3)[name] == variables("bert_tf", 3)[name] == "3"
