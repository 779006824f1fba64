from __future__ import annotations

import pytest

from benchmarks.stage import mismatch

OURS = {"ids": [[101, 7, 102], [101, 102]], "loss": 0.7}


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (OURS, None),
        ({**OURS, "loss": 0.7005}, None),
        ({**OURS, "loss": 0.702}, "loss before training is 0.702, not 0.7"),
        ({**OURS, "loss": float("nan")}, "loss before training is nan, not 0.7"),
        ({**OURS, "loss": None}, "loss before training is None, not 0.7"),
        ({"ids": [[101, 7, 102]], "loss": 0.7}, "no token ids for every example"),
        (
            {"ids": [[101, 100, 102], [101, 102]], "loss": 0.7},
            "token ids of example 0 are 3 (101, 100, 102), not 3 (101, 7, 102)",
        ),
    ],
)
def test_what_is_comparable(theirs, message):
    assert mismatch(OURS, theirs, with_loss=True) == message


def test_random_weights_have_losses_of_their_own():
    assert mismatch(OURS, {**OURS, "loss": 5.0}, with_loss=False) is None


def test_where_we_have_no_loss_none_is_asked_for():
    assert mismatch({**OURS, "loss": None}, {**OURS, "loss": 5.0}, with_loss=True) is None


def test_vectors_are_compared_where_there_are_any():
    ours = {**OURS, "vectors": [[0.5, 0.25]]}
    assert mismatch(ours, {**OURS, "vectors": [[0.5, 0.25001]]}, with_loss=True) is None
    for theirs in ([[0.5, 0.26]], [[0.5]], []):
        assert mismatch(ours, {**OURS, "vectors": theirs}, with_loss=True) == "vectors differ by more than 0.0001"
