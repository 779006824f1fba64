import logging as standard_logging
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.estimator import run
from bert_tf.extensions.memory_trace import implied_sizes, live_memory, peak_report, trace_file, trace_report
from bert_tf.extensions.memory_trace.hook import MemoryTraceHook
from tests.estimator import toy
from tests.estimator.test_hooks import take_steps

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1


class Watch(tf1.train.SessionRunHook):
    """Keeps the runtime's records of every step that has some."""

    def __init__(self):
        self.records = []

    def after_run(self, run_context, run_values):
        del run_context
        self.records.append(run_values.run_metadata)


def train(folder, pretrained, hooks):
    schedule = toy.Schedule(rows=24, batch_size=4, epochs=1)
    estimator = toy.make_estimator(folder, schedule=schedule, restore=pretrained)
    training = run.Training(schedule, log_every_n_steps=1, keep_optimizer_slots=True)
    run.train(estimator, toy.features(24), training, seed=1, hooks=hooks)


@pytest.fixture(scope="module")
def traced(tmp_path_factory, pretrained):
    folder = tmp_path_factory.mktemp("traced") / "out"
    watch = Watch()
    train(folder, pretrained, [MemoryTraceHook(folder, 5), watch])
    return folder, watch.records


def test_only_the_asked_step_is_traced(traced):
    folder, records = traced
    assert [bool(record and record.step_stats.dev_stats) for record in records] == [False, False, False, False, True, False]
    assert [path.name for path in folder.glob("memory_trace*")] == ["memory_trace_step5.txt"]


def test_what_is_read_back_are_the_sums_phases_and_sizes_of_the_step(traced):
    folder, records = traced
    trace = trace_file.read_trace(folder / "memory_trace_step5.txt")
    devices = records[4].step_stats.dev_stats
    outputs = (output for device in devices for node in device.node_stats for output in node.output)
    allocated = [output.tensor_description.allocation_description for output in outputs]
    sums = [sum(getattr(one, name) for one in allocated) for name in ("requested_bytes", "allocated_bytes")]
    report = trace_report.make_report(trace)
    assert (report.outputs, report.requested_bytes, report.allocated_bytes) == (len(allocated), *sums)
    assert report.requested_bytes > 100_000
    assert {skipped.problem for skipped in report.skipped} == {trace_file.NO_OUTPUTS}
    assert list(report.by_phase) == ["weights", "optimizer_state", "forward", "backward", "clip", "update"]
    kernels = toy.CONFIG.hidden_size * toy.CONFIG.intermediate_size * 4
    assert report.by_phase["clip"]["requested_bytes"] > 2 * kernels  # the scaled gradients are of it
    sizes = implied_sizes.infer(trace)
    read = {name: sizes[name].value for name in ("hidden_size", "intermediate_size", "positions", "batch", "layers")}
    assert read == {"hidden_size": 8, "intermediate_size": 16, "positions": 16, "batch": 4, "layers": 1}
    assert sizes["sequence_length"].value <= 12


def test_live_memory_of_a_real_step(traced):
    folder, records = traced
    assert [path.name for path in folder.glob("live_memory*")] == ["live_memory_step5.tsv"]
    step = live_memory.read_step(folder / "live_memory_step5.tsv")
    recorded = live_memory.live_memory(records[4])
    assert {name: memory.live.tolist() for name, memory in step.memories.items()} == {
        name: memory.live.tolist() for name, memory in recorded.items()
    }
    peak = peak_report.make_peak(step)
    shapes = tf.train.load_checkpoint(str(folder)).get_variable_to_shape_map()
    weights = sum(4 * int(np.prod(shape)) for name, shape in shapes.items() if f"{name}/adam_m" in shapes)
    assert peak.moment.by_phase["weights"] == weights
    assert peak.moment.by_phase["optimizer_state"] >= 2 * weights  # Adam's two moments; of embeddings, when they were current
    assert {"forward", "backward"} <= peak.moment.by_phase.keys()


def test_says_what_was_alive_at_the_peak(traced, tmp_path, caplog):
    hook = MemoryTraceHook(tmp_path, 5)
    hook._next, hook._variables = 5, {}
    with caplog.at_level(standard_logging.INFO, "absl"):
        hook.after_run(None, SimpleNamespace(run_metadata=traced[1][4]))
    (line,) = (record.getMessage() for record in caplog.records if "alive at its peak" in record.getMessage())
    assert line.startswith("step 5 had ")  # parts follow by size, and what other sessions of the process hold is one of them
    for part in ("alive at its peak (", "forward ", "; the allocator", f"; see python -m bert_tf memory peak {tmp_path}"):
        assert part in line


def test_step_without_allocations_leaves_no_file(tmp_path, caplog):
    hook = MemoryTraceHook(tmp_path, 1)
    hook._next, hook._variables = 1, {}
    hook.after_run(None, SimpleNamespace(run_metadata=tf1.RunMetadata()))
    assert "the runtime recorded no allocation" in caplog.text
    assert not list(tmp_path.glob("live_memory*"))


def test_training_is_the_same_with_a_trace(traced, tmp_path, pretrained):
    train(tmp_path / "out", pretrained, [])
    with_trace, without = (toy.metrics_lines(folder) for folder in (traced[0], tmp_path / "out"))
    assert [line["loss"] for line in with_trace] == [line["loss"] for line in without]


@pytest.mark.parametrize(("start", "asked", "why"), [(0, 9, "the run ended with step 6"), (6, 3, "the run starts with step 7")])
def test_says_why_there_is_no_trace_of_a_step_that_is_not_taken(tmp_path, caplog, start, asked, why):
    with caplog.at_level(standard_logging.WARNING, "absl"):
        take_steps([MemoryTraceHook(tmp_path, asked)], start=start, until=start + 6)
    assert f"--memory_trace_step={asked}: no trace, {why}" in caplog.text
    assert list(tmp_path.iterdir()) == []
