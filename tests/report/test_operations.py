"""Which operations took the time of recorded steps."""

from __future__ import annotations

import pytest

from bert_tf import run_layout
from bert_tf.report import operations
from tests.report import example


@pytest.fixture
def folder(tmp_path):
    return example.finished(tmp_path / "run")


def test_scopes_by_hand(folder):
    # 600 + 200 us a step, all of it in the pooler.
    found = [(row.path, row.time_us, row.share) for row in operations.of(folder).scopes]
    assert found == [(path, 800, 1) for path in ("bert", "bert/pooler", "bert/pooler/dense")]


def test_phases_and_types_by_hand(folder):
    found = operations.of(folder)
    assert [(row.path, row.time_us) for row in found.phases if row.time_us] == [("forward", 600), ("backward", 200)]
    assert [(row.path, row.share) for row in found.types[:2]] == [("MatMul", 0.75), ("BiasAddGrad", 0.25)]


def test_what_only_waits_is_no_operation_of_the_longest(folder):
    assert [row.type for row in operations.of(folder).longest] == ["MatMul", "BiasAddGrad", "VarHandleOp"]


def test_rate_by_hand(folder):
    # 2 * 100 * 100 * 150 operations in 600 us, the peak is 10 GFLOP/s.
    longest = operations.of(folder).longest[0]
    assert (longest.gflops_per_s, longest.of_peak) == (pytest.approx(5), pytest.approx(0.5))


def test_run_without_recorded_steps(tmp_path):
    assert operations.of(example.begun(tmp_path)) is None


def damaged(**other):
    return {**example.OPERATIONS, **other}


@pytest.mark.parametrize(
    "content",
    [
        [],
        damaged(steps=0),
        damaged(steps="x"),
        damaged(step_us=0),
        damaged(matmul_peak_gflops=[]),
        damaged(operations=[example.operation("a", "MatMul", 1.0, total_us="x")]),
        damaged(operations=[{**example.operation("a", "MatMul", 1.0), "name": None}]),
        damaged(gpus={"GPU:0": {"steps": 0, "busy_us": 1}}),
    ],
)
def test_damaged_file_counts_as_none(folder, content):
    example.write_json(folder / run_layout.OPERATIONS, content)
    assert operations.of(folder) is None
