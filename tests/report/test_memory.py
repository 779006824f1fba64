"""Where memory went in a traced step."""

from __future__ import annotations

import pytest

from bert_tf.report import memory
from tests.report import example
from tests.report.drawn import texts

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def test_alive_at_the_peak_by_hand(folder):
    # 100 MiB before the step and 100 of it; the allocator counted 220.
    live = memory.live(folder)
    assert (live.step, live.allocator, live.mib, live.seconds) == (8, "cpu", 200, 0.002)
    assert live.agreement == "the allocator itself counted 220 MiB at most, they differ by 9.1 %"
    assert [(phase.name, phase.mib) for phase in live.phases] == [
        ("weights", 30),
        ("optimizer state", 40),
        ("other, there before", 30),
        ("forward", 40),
        ("backward", 60),
    ]
    assert "peak 200" in texts(live.chart)


def test_a_phase_has_one_colour_in_both_pictures(folder):
    alive, put_out = ({phase.name: phase.colour for phase in of(folder).phases} for of in (memory.live, memory.put_out))
    assert {name: alive[name] for name in put_out} == put_out
    assert len(set(alive.values())) == len(alive)


def test_an_allocator_without_a_count(folder):
    (folder / "live_memory_step8.tsv").write_text(example.LIVE.replace("\tbefore\t104857600\tpeak\t230686720", ""))
    assert memory.live(folder).agreement == "the allocator keeps no count of its own"


def test_put_out_by_phase(folder):
    found = memory.put_out(folder)
    assert found.step == 8
    assert [(phase.name, phase.outputs, phase.mib) for phase in found.phases] == [
        ("weights", 1, 1.0),
        ("forward", 1, 2.0),
        ("backward", 1, 3.0),
    ]


def test_last_of_several_steps(folder):
    (folder / "memory_trace_step12.txt").write_text(example.TRACE)
    (folder / "live_memory_step12.tsv").write_text(example.LIVE)
    assert (memory.put_out(folder).step, memory.live(folder).step) == (12, 12)


def test_run_without_a_traced_step(tmp_path):
    assert (memory.live(example.begun(tmp_path)), memory.put_out(tmp_path)) == (None, None)


def test_step_that_took_no_memory_has_no_picture(folder):
    (folder / "live_memory_step8.tsv").write_text("# live memory of step 8\n# allocator\tcpu\n")
    assert memory.live(folder) is None


@pytest.mark.parametrize("content", ["", "no trace", "SrcNode a 0", "# live memory of step 8", example.LIVE + "5"])
def test_damaged_files_count_as_none(folder, content):
    for name in ("memory_trace_step8.txt", "live_memory_step8.tsv"):
        (folder / name).write_text(content)
    assert (memory.live(folder), memory.put_out(folder)) == (None, None)
