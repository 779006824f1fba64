"""Work ahead in another thread."""

from __future__ import annotations

import time

import pytest

from bert_tf.batch.ahead import ahead


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
