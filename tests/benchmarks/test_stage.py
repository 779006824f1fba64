"""What is comparable, and whose turn it is."""

from __future__ import annotations

import pytest

from benchmarks.procedures import take_turns
from benchmarks.stage import mismatch
from benchmarks.workers import WorkerError

ANSWER = {"ids": [[101, 7, 102], [101, 102]], "loss": 0.7}


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (ANSWER, None),
        ({**ANSWER, "loss": 0.7005}, None),
        ({**ANSWER, "loss": 0.702}, "loss before training is 0.702, not 0.7"),
        ({**ANSWER, "loss": float("nan")}, "loss before training is nan, not 0.7"),
        ({**ANSWER, "loss": None}, "loss before training is None, not 0.7"),
        ({"ids": [[101, 7, 102]], "loss": 0.7}, "no token ids for every example"),
        (
            {"ids": [[101, 100, 102], [101, 102]], "loss": 0.7},
            "token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)",
        ),
    ],
)
def test_what_is_comparable(theirs, message):
    assert mismatch(ANSWER, theirs, with_loss=True) == message


def test_losses_are_compared_where_both_are_of_the_same_weights():
    assert mismatch(ANSWER, {**ANSWER, "loss": 5.0}, with_loss=False) is None
    assert mismatch({**ANSWER, "loss": None}, {**ANSWER, "loss": 5.0}, with_loss=True) is None


def test_vectors_are_compared_where_there_are_any():
    ours = {**ANSWER, "vectors": [[0.5, 0.25]]}
    assert mismatch(ours, {**ANSWER, "vectors": [[0.5, 0.25001]]}, with_loss=True) is None
    for theirs in ([[0.5, 0.26]], [[0.5]], []):
        assert mismatch(ours, {**ANSWER, "vectors": theirs}, with_loss=True) == "vectors differ by more than 0.0001"


def turns_of(log, failing=None):
    def turn(name):
        def take():
            log.append(name)
            if name == failing and log.count(name) == 2:
                raise WorkerError("tired")
            return float(len(log))

        return take

    return {name: turn(name) for name in "abc"}


def test_every_round_has_everyone_every_other_is_reversed_and_the_warm_up_does_not_count():
    log: list[str] = []
    outcome = take_turns(turns_of(log), rounds=3)
    assert "".join(log[3:]) == "abc" "cba" "abc"
    assert outcome.samples["a"] == [4.0, 9.0, 10.0]


def test_who_fails_leaves_and_the_others_go_on():
    log: list[str] = []
    outcome = take_turns(turns_of(log, failing="b"), rounds=3)
    assert outcome.failures == {"b": "tired"}
    assert {name: len(values) for name, values in outcome.samples.items()} == {"a": 3, "c": 3}
