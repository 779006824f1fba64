"""Where the wall time went, on a clock that is moved by hand."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from bert_tf.profiling import wall_clock
from bert_tf.profiling.wall_clock import START, UNACCOUNTED, WallClock, process_age


class Clock:
    """Stands in for `time.perf_counter`."""

    now = 100.0

    def passes(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(wall_clock, "time", SimpleNamespace(perf_counter=lambda: fake.now))
    return fake


def test_the_time_of_an_inner_span_is_not_that_of_the_outer(clock):
    wall = WallClock()
    with wall.span(wall_clock.SAVES):
        clock.passes(1)
        with wall.span(wall_clock.EVALUATIONS):
            clock.passes(50)
        clock.passes(2)
        assert wall.account().parts[wall_clock.SAVES] == 3  # what is open counts so far
    assert wall.account().parts == {START: 0, wall_clock.SAVES: 3, wall_clock.EVALUATIONS: 50, UNACCOUNTED: 0}


def test_parts_add_up_to_the_time_since_the_process_started(clock):
    wall = WallClock(elapsed=4)
    clock.passes(1)
    with wall.run():
        clock.passes(0.25)
        wall.enter(wall_clock.DATA)
        clock.passes(2)
        wall.rename(wall_clock.FEATURES)
        clock.passes(3)
        wall.leave()
        account = wall.account()
    assert account.parts == {START: 5, wall_clock.DATA: 2, wall_clock.FEATURES: 3, UNACCOUNTED: 0.25}
    assert account.seconds == sum(account.parts.values()) == 10.25


def test_the_end_of_a_span_closes_what_was_left_open_in_it(clock):
    wall = WallClock()
    span = wall.span(wall_clock.GRAPH)
    span.__enter__()
    wall.enter(wall_clock.SAVES)
    span.__exit__(None, None, None)
    clock.passes(1)
    assert wall.account().parts == {START: 1, wall_clock.GRAPH: 0, wall_clock.SAVES: 0, UNACCOUNTED: 0}


def test_each_run_of_a_process_has_an_account_of_its_own(clock):
    wall = WallClock(elapsed=4)
    with wall.run():
        clock.passes(7)
    wall.enter(wall_clock.DATA)
    clock.passes(7)
    wall.restart()  # forgets what was before
    with wall.run():
        wall.enter(wall_clock.FEATURES)
        clock.passes(2)
        assert (wall.account().parts, wall.elapsed()) == ({START: 0, wall_clock.FEATURES: 2, UNACCOUNTED: 0}, 2)
    with wall.run():
        clock.passes(1)
        assert wall.account().seconds == 1


def test_the_line_for_people_leaves_out_what_took_no_time(clock):
    wall = WallClock(elapsed=3)
    with wall.run(), wall.span(wall_clock.EVALUATIONS):
        clock.passes(102)
        with wall.span(wall_clock.SAVES):
            clock.passes(0.01)
        assert wall.account().text == "wall time 105.0 s: start of Python, imports 3.0, evaluating while training 102.0"


def test_a_process_knows_when_it_was_started():
    code = "import time; time.sleep(0.3); from bert_tf.profiling.wall_clock import process_age; print(process_age())"
    before = time.monotonic()
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert 0.3 <= age <= time.monotonic() - before + 0.02  # the kernel counts hundredths of a second
    assert process_age() > 0
