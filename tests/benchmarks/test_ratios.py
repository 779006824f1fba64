from __future__ import annotations

import pytest

from benchmarks.figures import ratio, spread


def test_the_middle_and_the_ends():
    assert spread([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)


def test_ratios_are_of_the_same_round():
    # The machine is half as fast in the second round: medians alone would say 15 / 15.
    assert ratio([20.0, 10.0], [10.0, 5.0]) == (2.0, 2.0, 2.0)


def test_rounds_must_match():
    with pytest.raises(ValueError, match="2 rounds beside 1"):
        ratio([1.0, 2.0], [1.0])
