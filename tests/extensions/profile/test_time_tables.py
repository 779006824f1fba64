import dataclasses

import pytest
import tensorflow as tf

from bert_tf.extensions.profile import step_stats, time_tables, time_text
from bert_tf.extensions.profile.operations_file import Operation, Record
from tests.profiling import recorded
from tests.profiling.recorded import CLIP, GRADIENT, PRODUCT, STEP_US

SUM = 56.0  # us a step, see `recorded`


@pytest.fixture(scope="module")
def record():
    return recorded.record(peak=0.1)  # GFLOP/s: 100 operations in a microsecond


@pytest.fixture(scope="module")
def rows(record):
    return time_tables.op_table(record)


def named(rows):
    return {row.name: row for row in rows}


def test_a_row_of_an_operation(rows):
    row = named(rows)[PRODUCT]
    assert (row.scope, row.phase, row.type, row.dtype) == (("bert", "pooler", "dense"), "forward", "_FusedMatMul", "float32")
    assert (row.calls, row.time_us, row.min_us, row.max_us) == (1, 20, 10, 30)
    assert row.share == pytest.approx(20 / SUM)
    assert row.sizes == "[5, 8] [8, 16]"
    assert row.gflop == pytest.approx(1152e-9)
    assert row.gflops_per_s == pytest.approx(0.0576)  # 2304 in 40 us
    assert row.of_peak == pytest.approx(0.576)
    assert (row.eligible, row.uses, row.obstacle) == (0, None, "float32")
    row = named(rows)[CLIP]  # which multiplies nothing
    assert (row.gflop, row.gflops_per_s, row.of_peak, row.eligible, row.obstacle) == (None, None, None, None, "")


def test_rows_stand_by_time_and_what_waits_has_no_share(rows):
    assert [row.name for row in rows][:3] == [recorded.BATCH, PRODUCT, GRADIENT]
    assert {row.name: row.share for row in rows if row.waits} == {recorded.BATCH: None, recorded.UPSTREAM: None}
    assert sum(row.share or 0 for row in rows) == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        ("IteratorGetNext", True),
        ("MultiDeviceIteratorGetNextFromShard", True),
        ("_HostRecv", True),
        ("CollectiveReduceV2", True),
        ("StatefulPartitionedCall", True),  # for the operations of the function, which have rows of their own
        ("_Send", False),
        ("IfThenElse", False),
    ],
)
def test_tells_what_waits_by_its_type(kind, waits):
    (row,) = time_tables.op_table(Record(1, STEP_US, (Operation("x", kind, "CPU:0", "", (), (), 1, 5.0, 5.0, 5.0),)))
    assert row.waits is waits


def test_several_devices_are_told_apart():
    steps = [recorded.step(4, 10, device="CPU:0"), recorded.step(4, 10, device="CPU:1")]
    rows = time_tables.op_table(Record(1, STEP_US, step_stats.operations(steps)))
    assert {row.device for row in rows if row.name == PRODUCT} == {"CPU:0", "CPU:1"}
    assert "CPU:1" in "\n".join(time_text.describe_ops(rows, 9))


def test_groups_are_the_scopes_of_variables_with_all_below_them(rows):
    groups = time_tables.group_table(rows, 3)
    shown = [(row.path, row.time_us, row.ops) for row in groups]
    assert shown == [("bert", 52, 6), ("bert/pooler", 52, 6), ("bert/pooler/dense", 49, 5), ("(clip)", 4, 1)]
    assert groups[0].by_phase == {"forward": 26, "backward": 20, "clip": 0, "update": 6}
    assert groups[0].share == pytest.approx(52 / SUM)
    assert groups[2].gflop == pytest.approx(2304e-9)
    assert groups[2].gflops_per_s == pytest.approx(0.0576)  # while products run: 4608 in 80 us
    assert (groups[0].of_peak, groups[0].eligible, groups[0].uses) == (pytest.approx(0.576), 0, None)
    assert groups[3].gflops_per_s is None


@pytest.mark.parametrize("depth", [1, 2, 9])
def test_the_uppermost_groups_are_the_whole(rows, depth):
    groups = time_tables.group_table(rows, depth)
    assert sum(row.time_us for row in groups if "/" not in row.path) == pytest.approx(SUM)
    assert max(row.path.count("/") for row in groups) == min(depth, 3) - 1


def test_the_model(record, rows):
    model = time_tables.model_table(record, rows)
    assert (model.clock, model.steps, model.step_us) == ("host", 2, STEP_US)
    assert (model.total.ops, model.total.calls, model.total.time_us, model.waiting_us) == (7, 7, SUM, 100)
    assert (model.products, model.eligible, model.uses) == (2, 0, None)
    assert model.step_gflops_per_s == pytest.approx(0.02304)  # 2304 in 100 us
    assert model.step_of_peak == pytest.approx(0.2304)
    assert {row.path: row.time_us for row in model.by_phase} == {"forward": 26, "backward": 20, "clip": 4, "update": 6}
    assert [row.path for row in model.by_type][:2] == ["MatMul", "_FusedMatMul"]
    assert sum(row.time_us for row in model.by_type) == SUM


def test_without_a_peak_or_a_trace_of_the_gpu_rates_are_not_known():
    record = recorded.record()
    model = time_tables.model_table(record, time_tables.op_table(record))
    assert (model.step_of_peak, model.total.of_peak) == (None, None)
    assert "not known" in "\n".join(time_text.describe_model(model))
    record = recorded.record(peak=0.1, device=recorded.GPU)
    rows = time_tables.op_table(record)
    model = time_tables.model_table(record, rows)
    assert (model.clock, named(rows)[PRODUCT].gflops_per_s, model.total.gflops_per_s) == ("launches", None, None)
    assert model.step_gflops_per_s == pytest.approx(0.02304)
    assert "no trace of the GPU: times are those of the host" in "\n".join(time_text.describe_model(model))


def test_half_precision_is_kept_from_tensor_cores_by_its_sizes():
    row = named(time_tables.op_table(recorded.record(dtype=tf.bfloat16)))[PRODUCT]
    assert (row.eligible, row.obstacle) == (0, "M = 5: not a multiple of 8")
    steps = [recorded.step(16, 10, dtype=tf.bfloat16), recorded.step(5, 30, dtype=tf.bfloat16)]
    record = dataclasses.replace(recorded.record(), operations=step_stats.operations(steps))
    rows = time_tables.op_table(record)
    assert named(rows)[PRODUCT].eligible == 10 / 40
    # Half of the gradient's 20 us too: once K is 16.
    assert time_tables.model_table(record, rows).total.eligible == pytest.approx((5 + 10) / SUM)


def test_with_a_trace_of_a_gpu_its_time_counts():
    on_gpu = recorded.on_gpu()
    rows = time_tables.op_table(on_gpu)
    row = named(rows)[PRODUCT]
    assert (row.time_us, row.host_us, row.share) == (6, 20, pytest.approx(0.6))
    assert (row.uses, row.eligible, row.obstacle) == (True, 1, "")  # although 5 rows are no multiple of 8
    assert row.gflops_per_s == pytest.approx(0.192)  # 1152 in 6 us
    assert named(rows)[CLIP].uses is False
    assert named(rows)[GRADIENT].time_us == 0  # launched nothing
    model = time_tables.model_table(on_gpu, rows)
    assert (model.clock, model.total.time_us, model.uses) == ("GPU", 10, 1)
    assert (model.total.uses, model.total.eligible) == (pytest.approx(0.6), pytest.approx(0.6))
    assert model.gpu_idle == {"GPU:0": pytest.approx(0.91)}  # 9 of 100 us


def test_text_has_what_a_person_asks_for(record, rows):
    tables = time_tables.model_table(record, rows)
    model = "\n".join(time_text.describe_model(tables))
    assert "2, 71.4 % of the sum" in model
    assert "0.023 GFLOP/s = 23.0 % of the peak" in model
    groups = list(time_text.describe_groups("scope", time_tables.group_table(rows, 3), tables.total))
    assert [line[:8].rstrip() for line in groups[1:]] == ["bert", "  pooler", "    dens", "(clip)"]
    gpu_rows = time_tables.op_table(recorded.on_gpu())
    text = "\n".join(time_text.describe_ops(gpu_rows, 2))
    assert "splitKreduce_kernel" in text
    assert "(7 more; --top has others)" in text
    assert "GPU:0 idle" in "\n".join(time_text.describe_model(time_tables.model_table(recorded.on_gpu(), gpu_rows)))


def test_tsv_has_a_line_for_each_row_and_as_many_cells(record, rows):
    for table in (rows, time_tables.group_table(rows, 3), (time_tables.model_table(record, rows),)):
        lines = [line.split("\t") for line in time_text.tsv(table)]
        assert len(lines) == len(table) + 1
        assert len({len(line) for line in lines}) == 1
