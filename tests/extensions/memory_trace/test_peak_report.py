"""The peak of a step."""

import json

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.extensions.memory_trace import peak_report
from bert_tf.extensions.memory_trace.live_memory import Change, LiveMemory, Step, in_order

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


def of_pool(*memory):
    return peak_report.make_peak(Step(3, {"pool": LiveMemory(*memory)}, {"pool": HELD}))


def test_peak_by_hand():
    peak = peak_report.make_peak(STEP, intervals=5)
    printed = json.loads(json.dumps(peak_report.as_json(peak)))
    # Intervals of 20 us: the second begins with the peak, in the fourth nothing changes, in the last all is given back.
    timeline = [(10, 1500), (20, 1750), (40, 1300), (60, 1300), (99, 1000)]
    assert [(moment["us"], moment["live_bytes"]) for moment in printed.pop("timeline")] == timeline
    own = {
        "before_bytes": 1000,
        "step_peak_bytes": 750,
        "allocator_peak_bytes": 1760,
        "difference_percent": pytest.approx(-0.5682, abs=1e-4),  # 1750 for 1760
        "step_difference_percent": pytest.approx(-1.3158, abs=1e-4),  # 750 for 760
    }
    uncounted = {**dict.fromkeys(own), "step_peak_bytes": 9}
    assert printed == {
        "step": 3,
        "allocator": "pool",
        "peak_bytes": 1750,
        "peak_us": 20,
        "duration_us": 99,
        **own,
        "by_phase": {"weights": 300, "optimizer_state": 600, "other_before": 100, "forward": 500, "backward": 250},
        "by_layer": {"bert/embeddings": 300, "layer 1": 450},
        "largest": [
            {"operation": EMBEDDED, "bytes": 300, "phase": "forward"},
            {"operation": BACKWARD, "bytes": 250, "phase": "backward"},
            {"operation": FORWARD, "bytes": 200, "phase": "forward"},
        ],
        "by_allocator": {"pool": own, "host": uncounted},
    }
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


@pytest.mark.parametrize("intervals", [1, 2, 3, 120])
def test_the_peak_is_in_every_timeline(intervals):
    timeline = peak_report.make_peak(STEP, intervals=intervals).timeline
    assert (len(timeline), max(moment.live for moment in timeline)) == (intervals, 1750)


@pytest.mark.parametrize(("before", "own"), [(None, None), (0, 0), (None, 7)])
def test_no_agreement_where_the_allocator_does_not_count(before, own):
    (agreement,) = of_pool(CHANGES, LIVE, before, own).agreement.values()
    assert "no count of its own" in peak_report.agreement(agreement)


def test_another_allocator():
    peak = peak_report.make_peak(STEP, allocator="host")
    assert (peak.allocator, peak.moment.live) == ("host", 9)
    with pytest.raises(DataError, match=r"step 3: unknown allocator 'pol'; did you mean pool\? \(known: host, pool\)"):
        peak_report.make_peak(STEP, allocator="pol")


def test_extreme_steps():
    with pytest.raises(DataError, match="step 3: no operation took memory"):
        peak_report.make_peak(Step(3, {}, {}))
    assert of_pool((), np.array([], np.int64), 1000, 1000).moment.live == 1000
    # Variables beyond what the allocator counts stay whole.
    by_phase = of_pool(CHANGES[:1], LIVE[:1], 850, 1150).moment.by_phase
    assert by_phase == {"weights": 300, "optimizer_state": 600, "forward": 300}
