"""What is comparable, and whose turn it is."""

import numpy as np
import pytest

from benchmarks.comparisons import COMPARISONS
from benchmarks.procedures import take_turns
from benchmarks.stage import Stage, lowest_cosine, mismatch
from benchmarks.workers import WorkerError

ANSWER = {"ids": [[101, 7, 102], [101, 102]], "loss": 0.7}
WITH_VECTORS = {**ANSWER, "vectors": [[0.5, 0.25]]}
APART = "vectors differ by more than 0.0001"
COSINES = "cosines to our float32 vectors are below 0.95"
OTHER_SHAPE = "vectors have the shape {}, not (1, 2)"


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (ANSWER, {"loss": 0.7005}, None),
        (ANSWER, {"loss": 0.702}, "loss before training is 0.702, not 0.7"),
        (ANSWER, {"loss": float("nan")}, "loss before training is nan, not 0.7"),
        (ANSWER, {"loss": None}, "loss before training is None, not 0.7"),
        ({**ANSWER, "loss": None}, {"loss": 5.0}, None),
        (ANSWER, {"ids": [[101, 7, 102]]}, "no token ids for every example"),
        (ANSWER, {"ids": [[101, 100, 102], [101, 102]]}, "token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)"),
        (WITH_VECTORS, {"vectors": [[0.5, 0.25001]]}, None),
        (WITH_VECTORS, {"vectors": [[0.5, 0.26]]}, APART),
        *((WITH_VECTORS, {"vectors": vectors}, OTHER_SHAPE.format(np.shape(vectors))) for vectors in ([[0.5]], [])),
    ],
)
def test_what_is_comparable(ours, theirs, message):
    assert mismatch(ours, {**ANSWER, **theirs}, with_loss=True) == message


@pytest.mark.parametrize(
    ("theirs", "settings", "message"),
    [
        ({"loss": 5.0}, {"with_loss": False}, None),  # of random weights
        # In another number format, vectors are compared by their cosines.
        ({"vectors": [[0.5, 0.26]]}, {"with_loss": True, "rounds_alike": False}, None),
        ({"vectors": [[0.5, -0.25]]}, {"with_loss": True, "rounds_alike": False}, COSINES),
    ],
)
def test_what_is_compared_of_other_weights_and_formats(theirs, settings, message):
    ours = WITH_VECTORS if "vectors" in theirs else ANSWER
    assert mismatch(ours, {**ANSWER, **theirs}, **settings) == message


def test_the_lowest_cosine_of_a_text_counts():
    assert lowest_cosine([[3.0, 4.0], [1.0, 0.0]], [[3.0, 4.0], [2.0, 2.0]]) == pytest.approx(0.5**0.5)


@pytest.fixture
def stage(bench):
    return Stage(COMPARISONS[0], bench)


@pytest.fixture
def turns():
    """Three contenders, who append their names to a log; b fails at its second turn if it is told to."""
    log = []

    def turn(name, fails=False):
        log.append(name)
        if fails and log.count(name) == 2:
            raise WorkerError("tired")
        return float(len(log))

    return turn, log


def test_every_round_has_everyone_every_other_is_reversed_and_the_warm_up_does_not_count(turns, stage):
    turn, log = turns
    samples = take_turns(stage, {name: lambda name=name: turn(name) for name in "abc"})
    assert "".join(log[3:]) == "abc" "cba" "abc"
    assert samples["a"] == [4.0, 9.0, 10.0]


def test_who_fails_leaves_and_the_others_go_on(turns, stage):
    turn, _ = turns
    samples = take_turns(stage, {name: lambda name=name: turn(name, name == "b") for name in "abc"})
    assert stage.notes == {"b": "failed: tired"}
    assert {name: len(values) for name, values in samples.items()} == {"a": 3, "c": 3}
