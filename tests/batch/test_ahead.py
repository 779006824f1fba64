"""Work ahead in another thread."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from bert_tf.batch.ahead import ahead, gathered


def test_items_come_in_their_order():
    assert list(ahead(range(100))) == list(range(100))
    assert list(ahead([])) == []
    assert list(ahead([None, None])) == [None, None]


def test_an_error_comes_after_what_was_made_before_it():
    def items():
        yield 1
        yield 2
        raise ValueError("third")

    made = ahead(items())
    assert [next(made), next(made)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(made)


def test_not_much_is_made_before_it_is_asked_for():
    made = []
    items = ahead(made.append(number) for number in range(1000))
    for asked in range(1, 6):
        next(items)
        time.sleep(0.01)
        assert asked <= len(made) <= asked + 2  # one that waits, and one in the making


def test_what_comes_at_once_is_gathered():
    assert list(gathered(range(7), 3, 60)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(gathered([], 3, 60)) == []


def until_set(event, pause):
    """Yields numbers, with pauses, until someone has got some of them."""
    for number in itertools.count():
        yield number
        if event.wait(pause):
            return
        assert number * pause < 60, "nobody got anything"


@pytest.mark.parametrize("pause", [60, 0.001], ids=["silent", "trickling"])
def test_items_do_not_wait_for_others_for_long(pause):
    got = threading.Event()
    made = gathered(until_set(got, pause), 10**6, 0.05)
    found = next(made)
    got.set()
    found = [*found, *itertools.chain.from_iterable(made)]
    assert found == list(range(len(found)))


def test_what_is_gathered_comes_before_a_failure():
    def items():
        yield 1
        raise ValueError("second")

    made = gathered(items(), 3, 60)
    assert next(made) == [1]
    with pytest.raises(ValueError, match="second"):
        next(made)
