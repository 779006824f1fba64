from __future__ import annotations

from benchmarks.procedures import take_turns
from benchmarks.workers import WorkerError


def contenders(log, failing=None):
    def turn(name):
        def take():
            log.append(name)
            if name == failing and log.count(name) == 2:
                raise WorkerError("tired")
            return float(len(log))

        return take

    return {name: turn(name) for name in "abc"}


def test_every_round_has_everyone_and_every_other_is_reversed():
    log: list[str] = []
    take_turns(contenders(log), rounds=3)
    assert "".join(log[3:]) == "abc" "cba" "abc"


def test_the_warm_up_does_not_count():
    log: list[str] = []
    outcome = take_turns(contenders(log), rounds=2)
    assert outcome.samples["a"] == [4.0, 9.0]


def test_who_fails_leaves_and_the_others_go_on():
    log: list[str] = []
    outcome = take_turns(contenders(log, failing="b"), rounds=3)
    assert outcome.failures == {"b": "tired"}
    assert {name: len(values) for name, values in outcome.samples.items()} == {"a": 3, "c": 3}
