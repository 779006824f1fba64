"""Recorded steps on the page."""

import pytest

from bert_tf.extensions.profile import OPERATIONS, PHASES, panel
from bert_tf.extensions.report import run_files
from tests.extensions.report import example

pytestmark = pytest.mark.usefixtures("_pictures_drawn_once")


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def test_phases_by_hand(folder):
    recorded = run_files.read_object(folder / PHASES)
    # Of 0.4 s the phases have 0.35 s.
    phases = {"data": 0.01, "forward": 0.1, "backward": 0.2, "optimizer": 0.04, "between the phases": 0.05}
    shown = [(part["name"], pytest.approx(part["seconds"]), pytest.approx(part["percent"])) for part in panel.phases(recorded)]
    assert shown == [(name, seconds, 100 * seconds / 0.4) for name, seconds in phases.items()]
    # Phases that fill the step leave nothing between.
    whole = {"steps": 1, "forward": 0.3, "all-reduce": 0.0999, "batch": 0.4}
    assert [part["name"] for part in panel.phases(whole)] == ["forward", "all-reduce"]
    assert panel.phases({"batch": {"mean": "x"}, "steps": [], "forward": "x"}) == []


def test_a_run_without_recorded_steps_has_no_panel(tmp_path):
    assert panel.of_runs(run_files.read_runs([example.begun(tmp_path)])) is None


def test_operations_by_hand(folder):
    shown = panel.operations(folder)
    # 600 + 200 us a step, all of it in the pooler; 2 * 100 * 100 * 150 operations in 600 us, the peak is 10 GFLOP/s.
    scopes = [(row.path, row.time_us, row.share) for row in shown["scopes"]]
    assert scopes == [(path, 800, 1) for path in ("bert", "bert/pooler", "bert/pooler/dense")]
    assert [(row.path, row.time_us) for row in shown["phases"] if row.time_us] == [("forward", 600), ("backward", 200)]
    assert [(row.path, row.share) for row in shown["types"][:2]] == [("MatMul", 0.75), ("BiasAddGrad", 0.25)]
    longest = shown["longest"]
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
    example.write_json(folder / OPERATIONS, [] if other is None else {**example.OPERATIONS, **other})
    assert panel.operations(folder) is None
