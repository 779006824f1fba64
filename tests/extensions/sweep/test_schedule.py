"""How many slots a run gets, and how long a sweep takes, by hand."""

import pytest

from bert_tf.extensions.sweep import schedule, table
from bert_tf.extensions.sweep.plan import PlannedRun
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
    assert schedule.share([planned("a", 1.0)], 64, replicas=False) == 64  # threads are not limited by the batch
    assert schedule.share([planned("a", 1.0, batch=12)], 64, replicas=True) == 1


@pytest.mark.parametrize(
    ("costs", "slots", "spread", "expected"),
    [
        ((1.0, 4.0, 6.0), 2, False, [("c", 1, 0.0, 6.0), ("b", 1, 0.0, 4.0), ("a", 1, 4.0, 5.0)]),
        # b and c have two GPUs each, 0-2 and 0-3; a, which starts from b, has the two that are free
        ((1.0, 4.0, 6.0), 4, True, [("c", 2, 0.0, 3.0), ("b", 2, 0.0, 2.0), ("a", 2, 2.0, 2.5)]),
    ],
)
def test_a_plan_by_hand(costs, slots, spread, expected):
    runs = [planned(name, cost, after="b" if name == "a" else None) for name, cost in zip("abc", costs)]
    plan = schedule.simulated(runs, slots, spread=spread)
    assert [(one.run.name, one.slots, one.start, one.end) for one in plan] == expected


def test_the_report_says_tokens_or_times():
    runs = [planned("a", 6e6), planned("b", 3e6), planned("c", 3e6)]
    *_, row, last, note = schedule.report(runs, 2, spread=False, tokens_per_second=None)
    assert row.split() == ["MRPC", "3", "6.0", "M", "tokens", "1", "6.0", "M", "tokens"]
    assert last == "3 runs: 12.0 M tokens on one slot, 6.0 M tokens on 2; no order takes less than 6.0 M tokens"
    assert note.endswith("once its first run is done, --plan prints times")
    *_, last = schedule.report(runs, 2, spread=False, tokens_per_second=1000.0)
    assert last == "3 runs: 3:20:00 on one slot, 1:40:00 on 2; no order takes less than 1:40:00"


def test_runs_that_are_done_tell_the_speed_of_the_others(tmp_path):
    runs = [planned("a", 6e6), planned("b", 3e6), planned("c", 3e6), planned("d", 1e6)]
    assert table.tokens_per_second(tmp_path, runs) is None
    table.write(tmp_path, table.result(runs[0], seconds=60.0))
    table.write(tmp_path, table.result(runs[1], seconds=30.0))
    table.write(tmp_path, table.failed(runs[2], "no memory"))
    assert table.tokens_per_second(tmp_path, runs) == 1e5
