"""The peak of a step."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.profiling.memory import peak_report
from bert_tf.profiling.memory.live_memory import Change, LiveMemory, Step, in_order
from bert_tf.profiling.memory.peak_report import Agreement

FORWARD, BACKWARD = "bert/encoder/layer_1/output/dense/MatMul", "gradients/bert/encoder/layer_1/output/dense/MatMul_grad/MatMul"
EMBEDDED = "bert/embeddings/GatherV2"
# 1000 bytes are there before, 900 of them variables; then 300 and 200 of the forward pass, 250 of the backward pass.
CHANGES = (
    Change(50, 300, EMBEDDED),
    Change(60, 200, FORWARD),
    Change(70, 250, BACKWARD),
    Change(80, -200, FORWARD),
    Change(90, -250, BACKWARD),
    Change(149, -300, EMBEDDED),
)
LIVE = np.array([300, 500, 750, 550, 300, 0])
HELD = {"weights": 300, "optimizer_state": 600}
STEP = Step(3, {"host": in_order([Change(55, 9, "a")]), "pool": LiveMemory(CHANGES, LIVE, 1000, 1760)}, {"pool": HELD})


@pytest.fixture(scope="module")
def peak():
    return peak_report.make_peak(STEP, intervals=5)


def test_peak_by_hand(peak):
    assert (peak.step, peak.allocator, peak.moment.live, peak.moment.us, peak.duration_us) == (3, "pool", 1750, 20, 99)
    assert list(peak.moment.by_phase.items()) == [
        ("weights", 300),
        ("optimizer_state", 600),
        ("other_before", 100),
        ("forward", 500),
        ("backward", 250),
    ]
    assert list(peak.by_layer.items()) == [("bert/embeddings", 300), ("layer 1", 450)]
    assert list(peak.largest.items()) == [(EMBEDDED, 300), (BACKWARD, 250), (FORWARD, 200)]
    assert list(peak_report.make_peak(STEP, largest=1).largest) == [EMBEDDED]


def test_timeline_has_the_highest_moment_of_each_interval(peak):
    # Of 20 microseconds each: the second begins with the peak, in the fourth nothing changes, in the last all is given back.
    found = [(moment.us, moment.live) for moment in peak.timeline]
    assert found == [(10, 1500), (20, 1750), (40, 1300), (60, 1300), (99, 1000)]
    for intervals in (1, 2, 3, 120):
        timeline = peak_report.make_peak(STEP, intervals=intervals).timeline
        assert (len(timeline), max(moment.live for moment in timeline)) == (intervals, 1750)


def test_agreement_with_the_allocator_by_hand(peak):
    own = peak.agreement["pool"]
    # 1750 for 1760, and 750 for 760.
    assert (own.difference_percent, own.step_difference_percent) == (
        pytest.approx(-0.5682, abs=1e-4),
        pytest.approx(-1.3158, abs=1e-4),
    )
    assert list(peak.agreement) == ["pool", "host"]


@pytest.mark.parametrize("found", [Agreement(None, 5, None), Agreement(0, 5, 0), Agreement(None, 5, 7)])
def test_no_agreement_where_the_allocator_does_not_count(found):
    assert found.difference_percent is None
    assert "no count of its own" in peak_report.agreement(found)


def test_another_allocator():
    peak = peak_report.make_peak(STEP, allocator="host")
    assert (peak.allocator, peak.moment.live) == ("host", 9)
    with pytest.raises(DataError, match=r"step 3: unknown allocator 'pol'; did you mean pool\? \(known: host, pool\)"):
        peak_report.make_peak(STEP, allocator="pol")


def test_extreme_steps():
    with pytest.raises(DataError, match="step 3: no operation took memory"):
        peak_report.make_peak(Step(3, {}, {}))
    before = LiveMemory((), np.array([], np.int64), 1000, 1000)
    assert peak_report.make_peak(Step(3, {"pool": before}, {"pool": HELD})).moment.live == 1000
    beyond = LiveMemory(CHANGES[:1], LIVE[:1], 850, 1150)  # variables beyond what the allocator counts stay whole
    found = peak_report.make_peak(Step(3, {"pool": beyond}, {"pool": HELD})).moment.by_phase
    assert found == {"weights": 300, "optimizer_state": 600, "forward": 300}


def test_json(peak):
    found = json.loads(json.dumps(peak_report.as_json(peak)))
    assert (found["peak_bytes"], found["step_peak_bytes"], found["before_bytes"], found["allocator_peak_bytes"]) == (
        1750,
        750,
        1000,
        1760,
    )
    assert sum(found["by_phase"].values()) == found["peak_bytes"]
    assert sum(found["by_layer"].values()) == found["step_peak_bytes"]
    assert found["largest"][0] == {"operation": EMBEDDED, "bytes": 300, "phase": "forward"}
    assert found["by_allocator"]["host"]["allocator_peak_bytes"] is None


def test_text(peak):
    text = peak_report.describe(peak)
    for part in (
        "step 3, pool: 1.75 kB at the peak, 0.0 ms after the first allocation of 0.1 ms\n",
        "the allocator's own count is 1.76 kB: they differ by -0.6 % (-1.3 % for the step alone)\n",
        "\nother, there before         100 bytes   5.7 %\n",
        "\nlayer 1                      450 bytes  60.0 %\n",
        "\n" + f"{BACKWARD}  250 bytes  backward\n",
        "forward 500 bytes, backward 250 bytes\n",
    ):
        assert part in text
