from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import tensorflow as tf

from bert_tf.extensions.placement_log import FILE
from bert_tf.extensions.placement_log.hook import PlacementHook, summary
from tests import processes
from tests.extensions.placement_log.placement_check import VARIANTS

tf1 = tf.compat.v1

# Parts by the names of operations, and where placement_check.py puts them.
SCOPES = {"bert/embeddings/": "/CPU:1", "bert/encoder/layer_0/": "/CPU:2", "bert/encoder/layer_1/": "/CPU:3"}
SCOPES |= {"bert/pooler/": "/CPU:1", "head/": "/CPU:2", "output_weights": "/CPU:2", "output_bias": "/CPU:2"}
# Which words there are, seeds and sizes: the first CPU computes them, wherever their part is.
HOSTED = {"AddV2", "Const", "FloorDiv", "FloorMod", "Mul", "Pack", "Prod", "Reshape", "StridedSlice", "Unique"}
# Matrix products of a layer: six dense layers and two of attention; twice as many backward, and four of LayerNorm.
FORWARD, BACKWARD = 8, 20


@pytest.fixture(scope="module")
def report():
    """What placement_check.py reports; in a process of its own, since devices are set up only once."""
    result = processes.run(["-m", "tests.extensions.placement_log.placement_check"])
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


def test_a_file_that_cannot_be_written_does_not_stop_the_training(tmp_path, caplog):
    (tmp_path / FILE).mkdir()
    PlacementHook(tmp_path).after_run(None, SimpleNamespace(run_metadata=tf1.RunMetadata()))
    assert f"--log_device_placement: {tmp_path / FILE}: " in caplog.text


APART = pytest.mark.several_machines
VARIANT = pytest.mark.parametrize("variant", VARIANTS)


class Placed(NamedTuple):
    name: str
    type: str
    device: str


def computing(rows: list[list[str]]) -> list[Placed]:
    """Leaves out what carries tensors from device to device and to the caller: it has the name of what it carries."""
    return [row for row in (Placed(*row) for row in rows) if not row.type.endswith(("Send", "Recv", "_Retval"))]


@APART
@VARIANT
def test_parts_run_where_they_are_placed(report, variant):
    rows = computing(report[variant]["rows"])
    for scope, device in SCOPES.items():
        hosted = {row.name for row in rows if row.device == "/CPU:0" and row.type in HOSTED}
        devices = {row.name: row.device for row in rows if scope in row.name and row.name not in hosted}
        assert devices, scope
        assert {name: actual for name, actual in devices.items() if actual != device} == {}


@APART
@VARIANT
def test_variables_and_their_moments_are_on_the_device_of_their_part(report, variant):
    handles = {row.name: row.device for row in computing(report[variant]["rows"]) if row.type == "VarHandleOp"}
    trained = [*report[variant]["variables"], "output_weights", "output_bias"]
    for name in trained:
        device = next(device for scope, device in SCOPES.items() if name.startswith(scope))
        assert {handles[f"{name}{suffix}"] for suffix in ("", "/adam_m", "/adam_v")} == {device}


@APART
@VARIANT
@pytest.mark.parametrize("layer", [0, 1])
def test_matrix_products_forward_and_backward_run_on_the_device_of_their_layer(report, variant, layer):
    products = [row for row in computing(report[variant]["rows"]) if "MatMul" in row.type and f"/layer_{layer}/" in row.name]
    backward = [row for row in products if row.name.startswith("gradients/")]
    assert {row.device for row in products} == {f"/CPU:{layer + 2}"}
    assert (len(products) - len(backward), len(backward)) == (FORWARD, BACKWARD)


@APART
@VARIANT
def test_nothing_large_runs_or_travels_where_nobody_placed_it(report, variant):
    measured = report[variant]
    elsewhere = [row for row in computing(measured["rows"]) if row.device == "/CPU:0"]
    of_updates = ("Apply", "Scatter", "Square")
    assert not [row.name for row in elsewhere if any(kind in row.type for kind in ("MatMul", *of_updates))]
    assert len([row for row in elsewhere if row.type == "Mul"]) < len(measured["variables"])  # as many scale gradients
    assert measured["travelling"] == []  # gradients are scaled and used where they are made
    assert measured["graphs_of_steps"] == [4, 0, 0, 0, 0, 0]  # the first step alone is asked for its graphs


@APART
def test_deferred_rows_are_made_current_on_the_device_of_the_table(report):
    rows = [row for row in computing(report["deferred, fused"]["before_saving"]) if row.type not in ("Const", "Identity")]
    in_loop = [row for row in rows if row.name.startswith("while/body/")]
    assert len(in_loop) > 50
    assert {row.device for row in in_loop} == {"/CPU:1"}


def run_steps(folder: Path, steps: int = 1, *, device: str | None = None) -> list[int]:
    """Runs steps of a small graph with the hook; returns how many graphs the session gave for each."""
    counts: list[int] = []

    class Count(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            del run_context
            counts.append(len(run_values.run_metadata.partition_graphs))

    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [1, 2], name="x")
        with tf.device(device):
            y = tf.matmul(x, x, transpose_b=True, name="y")
            z = tf.tanh(y, name="z")
        creator = tf1.train.ChiefSessionCreator(config=tf1.ConfigProto(allow_soft_placement=True))
        with tf1.train.MonitoredSession(creator, hooks=[PlacementHook(folder), Count()]) as session:
            for _ in range(steps):
                session.run(z, {x: [[1.0, 2.0]]})
    return counts


def test_the_first_step_has_a_row_for_each_operation_and_a_summary_and_later_ones_run_as_without_the_hook(tmp_path, caplog):
    with caplog.at_level("INFO", logger="absl"):
        assert run_steps(tmp_path, 3) == [1, 0, 0]
    header, *rows = (tmp_path / "device_placement.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "op\ttype\tdevice"
    assert rows == sorted(rows)
    assert {row.split("\t")[2] for row in rows} == {"/CPU:0"}
    assert "z\tTanh\t/CPU:0" in rows
    assert [row for row in rows if row.startswith("y\t") and "MatMul" in row]
    (text,) = (message for message in caplog.messages if "where operations run" in message)
    assert str(tmp_path / "device_placement.tsv") in text
    assert "  /CPU:0: " in text
    assert "matrix products: 1, received tensors: 0; most often 1 " in text
    assert "moved" not in text


def test_the_summary_says_what_soft_placement_moved(tmp_path, caplog):
    with caplog.at_level("INFO", logger="absl"):
        run_steps(tmp_path, device="/GPU:7")
    assert caplog.messages[-1].endswith("\n  soft placement moved 2 of them: y from /GPU:7 to /CPU:0, z from /GPU:7 to /CPU:0")


def test_a_step_that_fails_is_not_taken_for_the_first(tmp_path):
    hook = PlacementHook(tmp_path)
    assert hook.before_run(None).options.output_partition_graphs
    assert hook.before_run(None).options.output_partition_graphs


def test_the_summary_counts_by_device():
    placed = [
        *(Placed(f"a{i}", "Mul", "/CPU:0") for i in range(3)),
        *(Placed(f"b{i}", "Const", "/CPU:0") for i in range(5)),
        Placed("c", "BatchMatMulV2", "/GPU:0"),
        Placed("d", "_MklFusedMatMul", "/GPU:0"),
        Placed("e", "_Recv", "/GPU:0"),
        *(Placed(f"f{i}", kind, "/GPU:0") for i, kind in enumerate(["Add", "Add", "Sub", "Neg", "Exp"])),
    ]
    moved = [(f"a{i}", "/GPU:0", "/CPU:0") for i in range(4)]
    assert summary(placed, moved) == [
        "  /CPU:0: 8 operations, matrix products: 0, received tensors: 0; most often 3 Mul",
        "  /GPU:0: 8 operations, matrix products: 2, received tensors: 1;"
        " most often 2 Add, 1 BatchMatMulV2, 1 _MklFusedMatMul, 1 Sub",
        "  soft placement moved 4 of them: a0 from /GPU:0 to /CPU:0, a1 from /GPU:0 to /CPU:0, a2 from /GPU:0 to /CPU:0, ...",
    ]
