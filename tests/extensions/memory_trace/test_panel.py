"""The memory of a traced step on the page."""

import pytest

from bert_tf.extensions.memory_trace import panel
from bert_tf.extensions.report import run_files
from tests.extensions.report import example
from tests.extensions.report.drawn import texts

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def test_a_run_without_a_trace_has_no_panel(tmp_path):
    assert panel.of_runs(run_files.read_runs([example.begun(tmp_path)])) is None


def test_memory_by_hand(folder):
    # 100 MiB before the step and 100 of it; the allocator counted 220.
    live, put_out = panel.live(folder), panel.put_out(folder)
    assert (live["step"], live["allocator"], live["mib"], live["seconds"]) == (8, "cpu", 200, 0.002)
    assert live["agreement"] == "the allocator counted a peak of 220 MiB, a difference of 9.1 %"
    phases = {"weights": 30, "optimizer state": 40, "other, there before": 30, "forward": 40, "backward": 60}
    assert [(phase["name"], phase["mib"]) for phase in live["phases"]] == list(phases.items())
    assert "peak 200" in texts(live["chart"])
    sums = [(phase["name"], phase["outputs"], phase["mib"]) for phase in put_out["phases"]]
    assert sums == [("weights", 1, 1.0), ("forward", 1, 2.0), ("backward", 1, 3.0)]
    # A phase has one colour in both pictures.
    alive, colours = ({phase["name"]: phase["colour"] for phase in memory["phases"]} for memory in (live, put_out))
    assert {name: alive[name] for name in colours} == colours
    assert len(set(alive.values())) == len(alive)
    # The last of several steps counts.
    (folder / "memory_trace_step12.txt").write_text(example.TRACE)
    (folder / "live_memory_step12.tsv").write_text(example.LIVE.replace("\tbefore\t104857600\tpeak\t230686720", ""))
    assert (panel.put_out(folder)["step"], panel.live(folder)["step"]) == (12, 12)
    assert panel.live(folder)["agreement"] == "the allocator keeps no count of its own"


@pytest.mark.parametrize(
    "content",
    [
        *("", "no trace", "SrcNode a 0", "# live memory of step 8", example.LIVE + "5"),
        "# live memory of step 8\n# allocator\tcpu\n",  # no memory was taken
    ],
)
def test_damaged_and_empty_memory_files_count_as_none(folder, content):
    for name in ("memory_trace_step8.txt", "live_memory_step8.tsv"):
        (folder / name).write_text(content)
    assert (panel.live(folder), panel.put_out(folder)) == (None, None)
