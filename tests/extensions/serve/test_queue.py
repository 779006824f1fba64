"""Batches that are made of what waits."""

from __future__ import annotations

import itertools
import threading
import time
from types import SimpleNamespace
from unittest import mock

import pytest

from bert_tf.extensions.serve.call import Part
from bert_tf.extensions.serve.queue import GoneError, Queue


def part(name, tokens=10):
    return Part("predict", [name], tokens)


def names(batch):
    return [one.part.examples[0] for one in batch]


def queue(**changed):
    return Queue(**{"batch_tokens": 30, "max_delay_s": 0.0, **changed})


@pytest.mark.parametrize(
    ("requests", "batches"),
    [
        ([{"a": 10}, {"b": 10}, {"c": 10}, {"d": 10}], ["abc", "d"]),
        ([{"a": 10}, {"b": 99}, {"c": 10}], ["a", "b", "c"]),  # more tokens than a batch has are one of their own
        ([{"a": 15, "b": 15, "c": 15, "d": 15}, {"x": 15}], ["ax", "bc", "d"]),  # requests take turns
    ],
)
def test_a_batch_is_full_at_so_many_tokens(requests, batches):
    waiting = queue()
    for request in requests:
        waiting.put([part(*one) for one in request.items()])
    assert (waiting.tokens, waiting.requests) == (sum(map(sum, map(dict.values, requests))), len(requests))
    assert ["".join(names(waiting.take(1))) for _ in batches] == batches
    assert (waiting.tokens, waiting.requests, waiting.take(0.01)) == (0, 0, [])


def test_what_waits_is_taken_after_the_longest_delay():
    waiting = queue(max_delay_s=0.5)
    start = time.monotonic()
    waiting.put([part("a")])
    threading.Thread(target=waiting.put, args=([part("b")],)).start()
    assert names(waiting.take(5)) == ["a", "b"]
    assert time.monotonic() - start >= 0.5


def test_a_client_that_is_alone_does_not_wait_again(monkeypatch):
    waiting = queue(batch_tokens=99, max_delay_s=0.5)
    clock = itertools.accumulate(itertools.repeat(0.25))  # it moves on when it is read
    monkeypatch.setattr("bert_tf.extensions.serve.queue.time", SimpleNamespace(monotonic=lambda: next(clock)))
    waits = mock.Mock()
    monkeypatch.setattr(waiting._changed, "wait", waits)
    waited = []
    for requests in ("a", "b", "cd", "e"):
        for name in requests:
            waiting.put([part(name), part(name.upper())])
        waits.reset_mock()
        assert len(waiting.take(5)) == 2 * len(requests)
        waited.append(waits.called)
    assert waited == [True, False, False, True]  # the first may not be alone, and c and d were not


def test_what_nobody_waits_for_is_left_out_and_what_waits_may_be_failed():
    waiting = queue()
    (first,), _ = waiting.put([part("a")]), waiting.put([part("b")])
    first.answer.cancel()
    assert names(waiting.take(1)) == ["b"]
    waiting = queue()
    (one,) = waiting.put([part("a")])
    waiting.fail()
    with pytest.raises(GoneError):
        one.answer.result(0)
    assert (waiting.tokens, waiting.take(0.01)) == (0, [])


def test_tokens_of_what_nobody_waits_for_no_longer_count():
    waiting = queue()
    (first, _), (second,) = waiting.put([part("a"), part("b")]), waiting.put([part("c")])
    for one in (first, second):
        one.answer.cancel()
    waiting.discard_cancelled()
    assert (waiting.tokens, waiting.requests, names(waiting.take(1))) == (10, 1, ["b"])


def test_what_is_put_back_comes_first_and_alone():
    waiting = queue()
    waiting.put([part("a"), part("b")])
    batch = waiting.take(1)
    waiting.put([part("c")])
    waiting.put_back(batch)
    assert [names(waiting.take(1)) for _ in range(3)] == [["a"], ["b"], ["c"]]
    assert all(one.alone for one in batch)


def test_what_is_put_back_because_no_worker_began_it_shares_a_batch_again():
    waiting = queue()
    waiting.put([part("a"), part("b")])
    waiting.put_back(waiting.take(1), alone=False)
    assert names(waiting.take(1)) == ["a", "b"]


def test_neither_a_full_batch_nor_a_closed_queue_waits():
    waiting = queue(max_delay_s=60.0)
    waiting.put([part("a", 30)])
    assert names(waiting.take(5)) == ["a"]
    waiting.put([part("b")])
    waiting.close()
    assert names(waiting.take(1)) == ["b"]
    assert waiting.take(1) is None
