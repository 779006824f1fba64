"""Memory of a step over time, from records of allocation and release, and its file."""

import re

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import DataError
from bert_tf.extensions.memory_trace import live_memory
from bert_tf.extensions.memory_trace.live_memory import Change, LiveMemory, Step
from bert_tf.profiling.forecast.compute_options import ComputeOptions
from tests.profiling import steps

tf1 = tf.compat.v1


def recorded(*nodes):
    """RunMetadata of operations: name, allocator, bytes that it has in use at the end of the operation, and changes."""
    metadata = tf1.RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="/device:CPU:0")
    for name, allocator, in_use, *changes in nodes:
        node = device.node_stats.add(node_name=name, all_start_micros=changes[0][0], all_end_rel_micros=1)
        memory = node.memory.add(allocator_name=allocator, allocator_bytes_in_use=in_use)
        for micros, size in changes:
            memory.allocation_records.add(alloc_micros=micros, alloc_bytes=size)
    return metadata


RECORDS = recorded(
    ("a", "pool", 1100, (10, 100), (40, -100)),
    ("b", "pool", 1150, (20, 50), (30, -50)),
    ("c", "pool", 1300, (30, 200), (60, -200)),
    ("d", "host", 0, (25, 7)),
)


def test_live_memory_by_allocator():
    memories = live_memory.live_memory(RECORDS)
    pool, host = memories["pool"], memories["host"]
    # c is taken in the microsecond in which b is given back: for a moment both are there.
    assert pool.live.tolist() == [100, 150, 350, 300, 200, 0]
    np.testing.assert_allclose(pool.seconds, [0, 1e-5, 2e-5, 2e-5, 3e-5, 5e-5])
    assert (pool.peak, pool.before, pool.allocator_peak) == (350, 1000, 1300)
    assert (host.peak, host.before, host.allocator_peak) == (7, None, None)  # it does not count
    assert live_memory.live_memory(tf1.RunMetadata()) == {}


def test_alive_at_the_peak():
    assert list(live_memory.live_memory(RECORDS)["pool"].alive_at_peak().items()) == [("c", 200), ("a", 100), ("b", 50)]
    step = recorded(("a", "pool", 0, (1, 10), (2, -10)), ("b", "pool", 0, (3, 5), (4, 6)))  # a is given back before
    assert live_memory.live_memory(step)["pool"].alive_at_peak() == {"b": 11}
    assert live_memory.in_order([]).alive_at_peak() == {}


def test_variables_are_held_where_their_handles_are():
    metadata = tf1.RunMetadata()
    for device, allocator, names in (
        ("/device:GPU:0", "GPU_0_bfc", ("bert/pooler/dense/kernel", "bert/pooler/dense/kernel/adam_m", "global_step")),
        ("/device:GPU:1", "GPU_1_bfc", ("bert/pooler/dense/kernel/replica_1",)),
        ("/device:CPU:0", "cpu", ("bert/embeddings/word_embeddings", "unknown")),
        ("/device:GPU:0/stream:all", None, ("bert/pooler/dense/kernel",)),
    ):
        nodes = metadata.step_stats.dev_stats.add(device=device).node_stats
        for name in names:
            node = nodes.add(node_name=name)
            if allocator:
                node.memory.add(allocator_name=allocator, total_bytes=5)
                node.memory.add(allocator_name="gpu_host_bfc", total_bytes=1)
    sizes = {"bert/pooler/dense/kernel": 10, "bert/pooler/dense/kernel/adam_m": 20, "bert/pooler/dense/kernel/replica_1": 30}
    sizes |= {"bert/embeddings/word_embeddings": 40, "global_step": 8, "not/of/this/step/kernel": 50}
    assert live_memory.held(metadata, sizes) == {
        "GPU_0_bfc": {"weights": 10, "optimizer_state": 20},
        "GPU_1_bfc": {"weights": 30, "optimizer_state": 0},
        "cpu": {"weights": 40, "optimizer_state": 0},
    }


def test_a_real_step_agrees_with_its_allocator():
    recorded, state = steps.traced(steps.config(128, 1), 128, 8, ComputeOptions(), steps.CLASSIFIER, count=5, in_turn=True)
    memories = [max(live_memory.live_memory(metadata).values(), key=lambda memory: memory.peak) for metadata in recorded]
    assert min(memory.peak for memory in memories) > 3e6
    assert state > 1e6
    if memories[0].allocator_peak is None:  # TensorFlow's allocator of the CPU counts only where oneDNN is on
        assert {memory.before for memory in memories} == {None}
        return
    # Of one step the buffers of Eigen's threads, which only the allocator counts, may be more than a tenth.
    with_state = [(memory.before + memory.peak) / memory.allocator_peak for memory in memories]
    alone = [memory.peak / (memory.allocator_peak - memory.before) for memory in memories]
    assert np.median(with_state) == pytest.approx(1, abs=0.1)
    assert np.median(alone) == pytest.approx(1, abs=0.15)  # those buffers are a tenth of so small a step


POOL = LiveMemory(
    (Change(1000, 100, "a"), Change(1030, 200, "b/c"), Change(1030, -100, "a"), Change(1060, -200, "b/c")),
    np.array([100, 300, 200, 0]),
    before=1000,
    allocator_peak=1300,
)
HOST = LiveMemory((Change(1010, 7, "d"),), np.array([7]))
STEP = Step(12, {"pool": POOL, "host": HOST}, {"pool": {"weights": 400, "optimizer_state": 500}})
TEXT = """# live memory of step 12
# allocator\tpool\tbefore\t1000\tpeak\t1300
# allocator\thost
# held\tpool\tweights\t400\toptimizer_state\t500
microseconds\tbytes\tlive\tallocator\toperation
0\t100\t100\tpool\ta
10\t7\t7\thost\td
30\t200\t300\tpool\tb/c
30\t-100\t200\tpool\ta
60\t-200\t0\tpool\tb/c
"""


def test_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "live.tsv"
    live_memory.write(path, STEP)
    assert path.read_text() == TEXT
    step = live_memory.read_step(path)
    live_memory.write(path, step)
    assert path.read_text() == TEXT
    assert (step.number, step.held) == (STEP.number, STEP.held)
    assert [memory.live.tolist() for memory in step.memories.values()] == [[100, 300, 200, 0], [7]]
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert live_memory.read_step(path).memories["pool"].peak == 300


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("10\t7\t7", "10\t7", 7),
        ("10\t7\t7", "10\tx\t7", 7),
        ("30\t200\t300", "30\t201\t300", 8),  # no longer adds up
        ("10\t7\t7", f"10\t{1 << 63}\t{1 << 63}", 7),  # more than any memory
        ("before\t1000", "before\tmany", 2),
        ("before\t1000", f"before\t{1 << 63}", 2),
        ("of step 12", "of step twelve", 1),
        ("# allocator\thost", "# allocator", 3),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, old, new, line):
    path = tmp_path / "live.tsv"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(DataError, match=f"{re.escape(str(path))}:{line}: expected .*--memory_trace_step"):
        live_memory.read_step(path)


def test_other_files(tmp_path):
    (tmp_path / "other").write_text("SrcNode a 0\n")
    for name, problem in (("other", "not a file of live memory"), ("none", "cannot read: No such file")):
        with pytest.raises(DataError, match=problem):
            live_memory.read_step(tmp_path / name)
