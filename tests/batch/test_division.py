"""Work that several jobs divide."""

from __future__ import annotations

import re
import threading

import pytest

from bert_tf import lock
from bert_tf.batch.division import divided

PIECES = ["a1", "a2", "b1", "b2"]  # two that share something, and two


@pytest.fixture
def divide(tmp_path):
    """Returns a function that makes the pieces of one more job."""

    def make(pieces=PIECES):
        return divided(pieces, lambda piece, **how: lock.claiming(tmp_path / piece, **how), lambda piece: piece[0])

    return make


def test_alone_it_is_all_in_order(divide):
    assert list(divide()) == PIECES


def test_a_job_keeps_off_what_another_has_made_ready(divide):
    first, second = divide(), divide()
    assert [next(first), next(second), next(first), next(second)] == ["a1", "b1", "a2", "b2"]


def test_what_is_left_is_divided_all_the_same(divide):
    first, second = divide(PIECES[:2]), divide(PIECES[:2])
    assert [next(first), next(second)] == ["a1", "a2"]


def test_a_job_that_has_nothing_else_to_do_waits_for_the_other(divide, caplog):
    first, taken = divide(["a1"]), []
    next(first)
    with caplog.at_level("INFO", logger="absl"):
        waits = threading.Thread(target=lambda: taken.extend(divide(["a1"])))
        waits.start()
        waits.join(timeout=0.2)
        assert taken == []
    first.close()  # as by a failure; what a kill frees is the business of bert_tf.lock
    waits.join(timeout=30)
    assert taken == ["a1"]
    assert re.search("a1: process .*; waiting for it", caplog.text)
