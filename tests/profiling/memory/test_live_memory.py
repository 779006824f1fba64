"""Memory of a step over time, from records of allocation and release."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.profiling.forecast.compute_options import PUBLISHED, ComputeOptions
from bert_tf.profiling.memory.live_memory import held, live_memory, whole_step
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


STEP = recorded(
    ("a", "pool", 1100, (10, 100), (40, -100)),
    ("b", "pool", 1150, (20, 50), (30, -50)),
    ("c", "pool", 1300, (30, 200), (60, -200)),
    ("d", "host", 0, (25, 7)),
)


def test_adds_up_what_is_taken_and_given_back():
    memory = live_memory(STEP)["pool"]
    # c is taken in the microsecond in which b is given back: for a moment both are there.
    assert memory.live.tolist() == [100, 150, 350, 300, 200, 0]
    assert memory.peak == 350
    np.testing.assert_allclose(memory.seconds, [0, 1e-5, 2e-5, 2e-5, 3e-5, 5e-5])


def test_names_what_was_alive_at_the_peak_the_largest_first():
    assert list(live_memory(STEP)["pool"].alive_at_peak().items()) == [("c", 200), ("a", 100), ("b", 50)]


def test_what_an_operation_gave_back_before_the_peak_is_not_alive():
    memory = live_memory(recorded(("a", "pool", 0, (1, 10), (2, -10)), ("b", "pool", 0, (3, 5), (4, 6))))["pool"]
    assert memory.alive_at_peak() == {"b": 11}


def test_tells_what_was_there_before_from_what_the_allocator_counts():
    memory = live_memory(STEP)["pool"]
    assert (memory.before, memory.allocator_peak) == (1000, 1300)


def test_an_allocator_that_does_not_count_says_nothing():
    memory = live_memory(STEP)["host"]
    assert (memory.peak, memory.before, memory.allocator_peak) == (7, None, None)


def test_all_allocators_together():
    assert whole_step(live_memory(STEP)).peak == 357


def test_a_step_without_allocations_took_nothing():
    memory = whole_step(live_memory(tf1.RunMetadata()))
    assert (memory.peak, memory.alive_at_peak(), memory.seconds.size) == (0, {}, 0)


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
    sizes = {
        "bert/pooler/dense/kernel": 10,
        "bert/pooler/dense/kernel/adam_m": 20,
        "bert/pooler/dense/kernel/replica_1": 30,
        "bert/embeddings/word_embeddings": 40,
        "global_step": 8,
        "not/of/this/step/kernel": 50,
    }
    assert held(metadata, sizes) == {
        "GPU_0_bfc": {"weights": 10, "optimizer_state": 20},
        "GPU_1_bfc": {"weights": 30, "optimizer_state": 0},
        "cpu": {"weights": 40, "optimizer_state": 0},
    }


@pytest.mark.parametrize("options", [ComputeOptions(), PUBLISHED], ids=["default", "published"])
def test_a_real_step_agrees_with_its_allocator(options):
    recorded, state = steps.traced(steps.config(128, 2), 128, 8, options, count=7)
    memories = [max(live_memory(metadata).values(), key=lambda memory: memory.peak) for metadata in recorded]
    assert min(memory.peak for memory in memories) > 5e6
    assert state > 1e6
    if memories[0].allocator_peak is None:  # TensorFlow's allocator of the CPU counts only where oneDNN is on
        assert {memory.before for memory in memories} == {None}
        return
    # Of one step the buffers of Eigen's threads, which only the allocator counts, may be more than a tenth.
    with_state = [(memory.before + memory.peak) / memory.allocator_peak for memory in memories]
    alone = [memory.peak / (memory.allocator_peak - memory.before) for memory in memories]
    assert np.median(with_state) == pytest.approx(1, abs=0.1)
    assert np.median(alone) == pytest.approx(1, abs=0.15)  # those buffers are a tenth of so small a step
