"""Workers that work, every way in which one may fail, and how each library's is started."""

import dataclasses
import json
import os
import sys
import time

import pytest

from benchmarks import results
from benchmarks.comparisons import COMPARISONS, OTHER
from benchmarks.workers import Environments, Limits, Worker, WorkerError, variables
from tests.benchmarks.conftest import FAKE

LIMITS = Limits(ready=5, answer=5, quit=2)


def start(folder, way="dynamic", limits=LIMITS) -> Worker:
    """Starts a fake worker that behaves in some way."""
    path = folder / "workload.json"
    path.write_text(json.dumps({"way": way, "scratch": str(folder)}))
    return Worker((*FAKE, str(path)), folder / "log", limits=limits)


def is_alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_answers_each_request_until_it_dies_and_is_then_named_by_its_signal_each_time(tmp_path):
    with start(tmp_path, "dies late") as worker:
        assert worker.ready() == {"ready": True, "versions": {"fake": "1.0"}}
        assert worker.ask({"check": 2})["ids"] == [[101, 7, 102]] * 2
        assert worker.ask({"run": 3})["examples"] == 30
        for _ in range(2):
            with pytest.raises(WorkerError, match="killed by SIGABRT"):
                worker.ask({"run": 1})


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("cannot", "no such way: try another"),
        ("dies early", "ended with status 3: RuntimeError: out of luck"),
        ("babbles", "answered with something that is not a JSON object: 'epoch 1/3'"),
        ("silent", "no answer within 0.5 s"),
    ],
)
def test_a_worker_that_fails_is_one_line(way, message, tmp_path):
    limits = Limits(ready=0.5) if way == "silent" else LIMITS
    with pytest.raises(WorkerError) as caught, start(tmp_path, way, limits) as worker:
        worker.ready()
    assert str(caught.value) == message


def test_a_program_that_does_not_exist(tmp_path):
    with pytest.raises(WorkerError, match="/no/python cannot be started: No such file or directory"):
        Worker(("/no/python", "x"), tmp_path / "log", limits=LIMITS)


def test_nothing_is_left_behind_after_an_interrupt(tmp_path):
    def interrupted() -> None:
        with start(tmp_path, "has a child") as worker:
            worker.ready()
            assert is_alive(int((tmp_path / "child").read_text()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    end = time.monotonic() + 2
    while is_alive(int((tmp_path / "child").read_text())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(int((tmp_path / "child").read_text()))


@pytest.mark.several_machines
@pytest.mark.parametrize("name", ["features", "train-128"])
def test_our_own_worker_is_measured(name, bench):
    (row,) = (row for row in COMPARISONS if row.name == name)
    row = dataclasses.replace(row, contenders=row.contenders[:1], baselines=("bert_tf",), max_seq_length=64, batch_size=8)
    environments = Environments.found({}, peers=False)
    measured = dataclasses.replace(bench, environments=environments, rounds=1, steps=1, limits=Limits())
    (measured_row,) = results.compare(row, measured)["rows"]
    assert (measured_row["status"], len(measured_row["samples"])) == ("measured", 1)


def test_peers_are_started_if_they_are_wanted_and_there(tmp_path):
    unwanted = Environments.found({}, peers=False, other="/other/python")
    assert set(unwanted.missing.values()) == {"--peers was not given"}
    assert unwanted.commands["bert_tf"] == (sys.executable, "-m", "benchmarks.worker")
    assert unwanted.commands[OTHER] == ("/other/python", "-m", "benchmarks.worker")
    wanted = Environments.found({"transformers": sys.executable}, peers=True, project=tmp_path)
    python, script = wanted.commands["transformers"]
    assert python == sys.executable
    assert script.endswith("benchmarks/peers/transformers_trainer.py")
    assert os.path.isfile(script)
    assert wanted.missing[OTHER] == "--other_python was not given"
    assert wanted.missing["keras_hub"] == "no .peers/keras_hub/bin/python; `make benchmark-env` makes it"


def test_every_library_gets_as_many_threads_and_ours_alone_finds_this_package(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    peer, ours, other = (variables(library, 3) for library in ("transformers", "bert_tf", OTHER))
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        assert peer[name] == ours[name] == "3"
    assert "PYTHONPATH" not in peer
    assert ours["PYTHONPATH"] == other["PYTHONPATH"] != ""
