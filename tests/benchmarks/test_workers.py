"""Workers that work, and every way in which one may fail."""

from __future__ import annotations

import json
import os
import time

import pytest

from benchmarks.workers import Crew, Limits, Worker, WorkerError
from tests.benchmarks.conftest import FAKE

LIMITS = Limits(ready=5, answer=5, quit=2)


@pytest.fixture
def hire(tmp_path):
    """Starts a fake worker that behaves in some way."""
    with Crew() as crew:

        def start(way: str = "dynamic", limits: Limits = LIMITS) -> Worker:
            path = tmp_path / "workload.json"
            path.write_text(json.dumps({"way": way, "scratch": str(tmp_path)}))
            return crew.start((*FAKE, str(path)), tmp_path / "log", limits=limits)

        yield start


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"


def test_answers_each_request(hire):
    worker = hire()
    assert worker.ready() == {"ready": True, "versions": {"fake": "1.0"}}
    assert worker.ask({"check": 2})["ids"] == [[101, 7, 102]] * 2
    assert worker.ask({"run": 3})["examples"] == 30


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("cannot", "no such way: try another"),
        ("dies early", "ended with status 3: RuntimeError: out of luck"),
        ("babbles", "answered with something that is not a JSON object: 'epoch 1/3'"),
    ],
)
def test_a_worker_that_fails_is_one_line(way, message, hire):
    with pytest.raises(WorkerError) as caught:
        hire(way).ready()
    assert str(caught.value) == message


def test_a_worker_that_dies_later_is_named_by_its_signal(hire):
    worker = hire("dies late")
    worker.ready()
    worker.ask({"run": 1})
    with pytest.raises(WorkerError, match="killed by SIGABRT"):
        worker.ask({"run": 1})


def test_a_dead_worker_can_be_asked(hire):
    worker = hire("cannot")
    for _ in range(2):
        with pytest.raises(WorkerError):
            worker.ask({"run": 1})


def test_a_silent_worker_is_not_waited_for(hire):
    with pytest.raises(WorkerError, match=r"no answer within 0\.2 s"):
        hire("silent", Limits(ready=0.2)).ready()


def test_a_program_that_does_not_exist(tmp_path):
    with Crew() as crew, pytest.raises(WorkerError, match="/no/python cannot be started: No such file or directory"):
        crew.start(("/no/python", "x"), tmp_path / "log", limits=LIMITS)


def test_nothing_is_left_behind_after_an_interrupt(tmp_path):
    path = tmp_path / "workload.json"
    path.write_text(json.dumps({"way": "has a child", "scratch": str(tmp_path)}))

    def interrupted() -> None:
        with Crew() as crew:
            crew.start((*FAKE, str(path)), tmp_path / "log", limits=LIMITS).ready()
            assert is_alive(int((tmp_path / "child").read_text()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    end = time.monotonic() + 2
    while is_alive(int((tmp_path / "child").read_text())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(int((tmp_path / "child").read_text()))
