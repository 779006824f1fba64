"""Batches that are made of what waits."""

from __future__ import annotations

import threading
import time

import pytest

from bert_tf.service.question import Part
from bert_tf.service.queue import Queue


def part(name, tokens=10):
    return Part("predict", [name], tokens)


def names(batch):
    return [one.part.examples[0] for one in batch]


def queue(**changed):
    return Queue(**{"batch_tokens": 30, "max_delay_s": 0.0, **changed})


def test_a_batch_is_full_at_so_many_tokens():
    waiting = queue()
    for name in "abcd":
        waiting.put([part(name)])
    assert (waiting.tokens, waiting.requests) == (40, 4)
    assert [names(waiting.take(1)), names(waiting.take(1))] == [["a", "b", "c"], ["d"]]
    assert (waiting.tokens, waiting.requests) == (0, 0)


def test_a_part_with_more_tokens_is_a_batch_of_its_own():
    waiting = queue()
    for name, tokens in (("a", 10), ("b", 99), ("c", 10)):
        waiting.put([part(name, tokens)])
    assert [names(waiting.take(1)) for _ in range(3)] == [["a"], ["b"], ["c"]]


def test_requests_take_turns():
    waiting = queue(batch_tokens=20)
    waiting.put([part(f"long-{number}") for number in range(4)])
    waiting.put([part("short")])
    assert [names(waiting.take(1)) for _ in range(3)] == [["long-0", "short"], ["long-1", "long-2"], ["long-3"]]


def test_what_waits_is_taken_after_the_longest_delay():
    waiting = queue(max_delay_s=0.5)
    start = time.monotonic()
    waiting.put([part("a")])
    threading.Thread(target=waiting.put, args=([part("b")],)).start()
    assert names(waiting.take(5)) == ["a", "b"]
    assert time.monotonic() - start >= 0.5


def test_a_full_batch_does_not_wait():
    waiting = queue(max_delay_s=60.0)
    waiting.put([part("a", 30)])
    assert names(waiting.take(5)) == ["a"]


def test_nothing_comes_in_time():
    assert queue().take(0.01) == []


def test_what_nobody_waits_for_is_left_out():
    waiting = queue()
    (first,), _ = waiting.put([part("a")]), waiting.put([part("b")])
    first.answer.cancel()
    assert names(waiting.take(1)) == ["b"]


def test_what_is_put_back_comes_first_and_alone():
    waiting = queue()
    waiting.put([part("a"), part("b")])
    batch = waiting.take(1)
    waiting.put([part("c")])
    waiting.put_back(batch)
    assert [names(waiting.take(1)) for _ in range(3)] == [["a"], ["b"], ["c"]]
    assert all(one.alone for one in batch)


def test_a_closed_queue_gives_what_it_has_and_then_none():
    waiting = queue(max_delay_s=60.0)
    waiting.put([part("a")])
    waiting.close()
    assert names(waiting.take(1)) == ["a"]
    assert waiting.take(1) is None


def test_what_waits_may_be_failed():
    waiting = queue()
    (one,) = waiting.put([part("a")])
    waiting.fail(KeyError("gone"))
    with pytest.raises(KeyError):
        one.answer.result(0)
    assert (waiting.tokens, waiting.take(0.01)) == (0, [])
