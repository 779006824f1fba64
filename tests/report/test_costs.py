"""Where time and memory went."""

from __future__ import annotations

import pytest

from bert_tf import run_layout
from bert_tf.report import costs, run_files
from tests.report import example
from tests.report.drawn import texts

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def of(folder):
    return costs.of(run_files.read([folder])[0])


def shares(parts):
    return [(part["name"], pytest.approx(part["seconds"]), pytest.approx(part["percent"])) for part in parts]


def test_parts_of_time_by_hand(folder):
    found = of(folder)
    # batch_cost 0.4 s, of it 0.1 s waiting; the largest first.
    assert shares(found["parts"]) == [("computing", 0.3, 75), ("waiting for the batch (reader_cost)", 0.1, 25)]
    assert found["spreads"] == [("batch_cost", [0.4, 0.39, 0.5, 0.6]), ("reader_cost", [0.1, 0.1, 0.2, 0.3])]
    assert (found["diagnosis"], found["recorded"]) == ("The run was input-bound.", 3)
    wall = {"start of Python, imports": 4.0, "steps": 108.0, "evaluating while training": 102.0, "unaccounted": 2.0}
    assert shares(found["wall"]) == [(name, seconds, 100 * seconds / 216) for name, seconds in wall.items()]
    # Of 0.4 s the phases have 0.35 s.
    phases = {"data": 0.01, "forward": 0.1, "backward": 0.2, "optimizer": 0.04, "between the phases": 0.05}
    assert shares(found["phases"]) == [(name, seconds, 100 * seconds / 0.4) for name, seconds in phases.items()]
    # Phases that fill the step leave nothing between.
    example.write_json(folder / run_layout.PHASES, {"steps": 1, "forward": 0.3, "all-reduce": 0.0999, "batch": 0.4})
    assert [part["name"] for part in of(folder)["phases"]] == ["forward", "all-reduce"]


def test_run_without_any(tmp_path):
    folder = example.begun(tmp_path)
    assert not of(folder)["is_known"]
    assert (costs.operations(folder), costs.live(folder), costs.put_out(folder)) == (None, None, None)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", '{"batch": 3, "steps": null, "diagnosis": [], "wall": {"parts": {"steps": "x"}}}'),
        '{"batch": {"mean": "x"}, "steps": [], "forward": "x"}',
    ],
)
def test_damaged_files_count_as_none(folder, content):
    for name in (run_layout.TIMING, run_layout.PHASES):
        (folder / name).write_text(content)
    found = of(folder)
    unknown = {"parts": [], "spreads": [], "diagnosis": "", "wall": [], "phases": [], "recorded": 0}
    assert {name: found[name] for name in unknown} == unknown


def test_operations_by_hand(folder):
    found = costs.operations(folder)
    # 600 + 200 us a step, all of it in the pooler; 2 * 100 * 100 * 150 operations in 600 us, the peak is 10 GFLOP/s.
    scopes = [(row.path, row.time_us, row.share) for row in found["scopes"]]
    assert scopes == [(path, 800, 1) for path in ("bert", "bert/pooler", "bert/pooler/dense")]
    assert [(row.path, row.time_us) for row in found["phases"] if row.time_us] == [("forward", 600), ("backward", 200)]
    assert [(row.path, row.share) for row in found["types"][:2]] == [("MatMul", 0.75), ("BiasAddGrad", 0.25)]
    longest = found["longest"]
    assert [row.type for row in longest] == ["MatMul", "BiasAddGrad", "VarHandleOp"]  # none that only waits
    assert (longest[0].gflops_per_s, longest[0].of_peak) == (pytest.approx(5), pytest.approx(0.5))


@pytest.mark.parametrize(
    "other",
    [
        None,
        *(
            {"steps": 0},
            {"steps": "x"},
            {"step_us": 0},
            {"matmul_peak_gflops": []},
            {"gpus": {"GPU:0": {"steps": 0, "busy_us": 1}}},
        ),
        {"operations": [example.operation("a", "MatMul", 1.0, total_us="x")]},
        {"operations": [{**example.operation("a", "MatMul", 1.0), "name": None}]},
    ],
)
def test_damaged_operations_count_as_none(folder, other):
    example.write_json(folder / run_layout.OPERATIONS, [] if other is None else {**example.OPERATIONS, **other})
    assert costs.operations(folder) is None


def test_memory_by_hand(folder):
    # 100 MiB before the step and 100 of it; the allocator counted 220.
    live, put_out = costs.live(folder), costs.put_out(folder)
    assert (live["step"], live["allocator"], live["mib"], live["seconds"]) == (8, "cpu", 200, 0.002)
    assert live["agreement"] == "the allocator counted a peak of 220 MiB, a difference of 9.1 %"
    phases = {"weights": 30, "optimizer state": 40, "other, there before": 30, "forward": 40, "backward": 60}
    assert [(phase["name"], phase["mib"]) for phase in live["phases"]] == list(phases.items())
    assert "peak 200" in texts(live["chart"])
    sums = [(phase["name"], phase["outputs"], phase["mib"]) for phase in put_out["phases"]]
    assert sums == [("weights", 1, 1.0), ("forward", 1, 2.0), ("backward", 1, 3.0)]
    # A phase has one colour in both pictures.
    alive, colours = ({phase["name"]: phase["colour"] for phase in found["phases"]} for found in (live, put_out))
    assert {name: alive[name] for name in colours} == colours
    assert len(set(alive.values())) == len(alive)
    # The last of several steps counts.
    (folder / "memory_trace_step12.txt").write_text(example.TRACE)
    (folder / "live_memory_step12.tsv").write_text(example.LIVE.replace("\tbefore\t104857600\tpeak\t230686720", ""))
    assert (costs.put_out(folder)["step"], costs.live(folder)["step"]) == (12, 12)
    assert costs.live(folder)["agreement"] == "the allocator keeps no count of its own"


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
    assert (costs.live(folder), costs.put_out(folder)) == (None, None)
