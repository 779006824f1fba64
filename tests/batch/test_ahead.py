"""Work ahead in another thread."""

import itertools
import threading

import pytest

from bert_tf.batch.ahead import ahead, gathered


@pytest.mark.parametrize("items", [range(100), [], [None, None]])
def test_items_come_in_their_order(items):
    assert list(ahead(items)) == list(items)
    assert list(gathered(items, 3, 60)) == [list(items[start : start + 3]) for start in range(0, len(items), 3)]


@pytest.mark.parametrize(("make", "before"), [(ahead, 1), (lambda items: gathered(items, 3, 60), [1])])
def test_an_error_comes_after_the_items_before_it(make, before):
    def items():
        yield 1
        raise ValueError("second")

    made = make(items())
    assert next(made) == before
    with pytest.raises(ValueError, match="second"):
        next(made)


@pytest.mark.parametrize("make", [ahead, lambda items: gathered(items, 2, 0.0)])
def test_nothing_is_read_for_one_who_has_left(make):
    def items():
        try:
            yield from itertools.count()
        finally:
            is_closed.set()

    for _ in range(20):
        is_closed = threading.Event()
        made = make(items())
        next(made)
        made.close()
        assert is_closed.wait(60)


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
    items = next(made)
    got.set()
    items = [*items, *itertools.chain.from_iterable(made)]
    assert items == list(range(len(items)))
