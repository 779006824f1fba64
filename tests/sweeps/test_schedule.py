"""How many slots a run gets, and how long a sweep takes, by hand."""

from __future__ import annotations

import pytest

from bert_tf.sweeps import schedule
from bert_tf.sweeps.plan import PlannedRun
from tests.classifier import mrpc


def planned(name, cost, after=None, batch=32):
    return PlannedRun(name, "MRPC", 1, {}, mrpc(f"--train_batch_size={batch}"), cost, after)


@pytest.mark.parametrize(
    ("costs", "free", "share"),
    [
        ([9.0], 1, 1),
        ([9.0], 3, 2),  # 1, 2; 4 are not there
        ([9.0], 64, 4),  # 32 rows on 4 GPUs are 8 each
        ([9.0, 9.0], 2, 1),
        ([9.0, 9.0], 3, 2),
        ([9.0, 2.0], 4, 2),  # 9/1 2/1; 9/2 2/1; 9/4 would take 5
        ([9.0, 8.0], 4, 2),
    ],
)
def test_gpus_that_would_idle_go_to_the_run_that_ends_last(costs, free, share):
    waiting = [planned(str(number), cost) for number, cost in enumerate(costs)]
    assert schedule.share(waiting, free, replicas=True) == share


def test_threads_are_not_limited_by_the_batch():
    assert schedule.share([planned("a", 1.0)], 64, replicas=False) == 64
    assert schedule.share([planned("a", 1.0, batch=12)], 64, replicas=True) == 1


def test_a_plan_by_hand():
    """Two slots: long 0-6, middle 0-4, then short, which starts from middle, 4-5."""
    runs = [planned("short", 1.0, after="middle"), planned("middle", 4.0), planned("long", 6.0)]
    found = [(one.run.name, one.slots, one.start, one.end) for one in schedule.simulated(runs, 2, spread=False)]
    assert found == [("long", 1, 0.0, 6.0), ("middle", 1, 0.0, 4.0), ("short", 1, 4.0, 5.0)]


def test_a_plan_whose_runs_have_several_gpus():
    """Four: a and b have two each, 0-3 and 0-2; c, which starts from b, has the two that are free."""
    runs = [planned("a", 6.0), planned("b", 4.0), planned("c", 1.0, after="b")]
    found = [(one.run.name, one.slots, one.start, one.end) for one in schedule.simulated(runs, 4, spread=True)]
    assert found == [("a", 2, 0.0, 3.0), ("b", 2, 0.0, 2.0), ("c", 2, 2.0, 2.5)]


def test_the_report_says_tokens_or_times():
    runs = [planned("a", 6e6), planned("b", 3e6), planned("c", 3e6)]
    *_, row, last = schedule.report(runs, 2, spread=False, tokens_per_second=None)
    assert row.split() == ["MRPC", "3", "6.0", "M", "tokens", "1", "6.0", "M", "tokens"]
    assert last == "3 runs: 12.0 M tokens on one slot, 6.0 M tokens on 2; no order takes less than 6.0 M tokens"
    *_, last = schedule.report(runs, 2, spread=False, tokens_per_second=1000.0)
    assert last == "3 runs: 3:20:00 on one slot, 1:40:00 on 2; no order takes less than 1:40:00"
