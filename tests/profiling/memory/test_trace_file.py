from __future__ import annotations

from types import SimpleNamespace

import pytest

from bert_tf.errors import DataError, OutputError
from bert_tf.profiling.memory import trace_file
from bert_tf.profiling.memory.trace_file import Node, Output, Trace
from tests.profiling.excerpt import NODES, OUTPUTS, TRACE


def test_reads_nodes_with_their_outputs():
    assert trace_file.parse("SrcNode a/b 2\nOutput 0 12 256 bfc 7\nOutput 1 4 0 cpu 8\n") == Trace(
        (Node("a/b", (Output(0, 12, 256, "bfc", 7), Output(1, 4, 0, "cpu", 8))),)
    )


def test_reads_on_after_lines_that_it_cannot_use():
    trace = trace_file.parse(TRACE)
    assert (len(trace.nodes), len(list(trace.outputs()))) == (NODES, OUTPUTS)
    assert trace.skipped == ((13, "no outputs", "SrcNode group_deps 0"), (28, "malformed: no allocator", "Output 1 0 0  1124"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Output 1 4 4 bfc", "malformed: want Output, slot, requested, allocated, allocator, time"),
        ("Output 1 four 4 bfc 9", "malformed: want Output, slot, requested, allocated, allocator, time"),
        ("Output 1 -4 4 bfc 9", "malformed: want Output, slot, requested, allocated, allocator, time"),
        (f"Output 1 {'9' * 20} 4 bfc 9", "malformed: want Output, slot, requested, allocated, allocator, time"),
        ("Output 1 4 4 bfc ٣", "malformed: want Output, slot, requested, allocated, allocator, time"),
        ("Output 1 4  bfc 9", "malformed: no allocated"),
        ("Input 1 4 4 bfc 9", "malformed: neither SrcNode nor Output"),
    ],
)
def test_names_a_malformed_line_and_keeps_its_neighbours(line, problem):
    trace = trace_file.parse(f"SrcNode a 2\nOutput 0 4 4 bfc 9\n{line}\nSrcNode b 1\nOutput 0 8 8 bfc 9")
    assert [output.requested for _, output in trace.outputs()] == [4, 8]
    assert (3, problem, line) in trace.skipped


def test_a_time_that_a_cut_file_has_the_first_digits_of_is_no_time():
    trace = trace_file.parse("SrcNode a 2\nOutput 0 4 4 bfc 1561347949594120\nOutput 1 4 4 bfc 15613")
    assert trace.nodes == (Node("a", (Output(0, 4, 4, "bfc", 1561347949594120),)),)
    assert trace.skipped == ((3, "malformed: cut off", "Output 1 4 4 bfc 15613"),)


def test_outputs_below_a_malformed_operation_belong_to_none():
    trace = trace_file.parse("SrcNode a 1\nOutput 0 4 4 bfc 9\nSrcNode b\nOutput 0 8 8 bfc 9\n")
    assert trace.nodes == (Node("a", (Output(0, 4, 4, "bfc", 9),)),)
    assert [(skipped.line, skipped.problem) for skipped in trace.skipped] == [
        (3, "malformed: want SrcNode, name, number of outputs"),
        (4, "malformed: an output of no operation"),
    ]


def test_says_where_outputs_are_missing():
    trace = trace_file.parse("SrcNode a 2\nOutput 0 4 4 bfc 9\nSrcNode b 1\nOutput 0 4 4 bfc 9\n")
    assert trace.skipped == ((1, "miscounted: 2 outputs announced, 1 found", "SrcNode a 2"),)


def test_reads_windows_line_ends_and_blank_lines():
    assert trace_file.parse(TRACE.replace("\n", "\r\n\r\n")).nodes == trace_file.parse(TRACE).nodes


@pytest.mark.parametrize(("text", "problem"), [(b"", "no line begins with SrcNode"), (b"\xff\xfe\x00", "no line begins")])
def test_refuses_what_is_no_trace(tmp_path, text, problem):
    (tmp_path / "x.txt").write_bytes(text)
    with pytest.raises(DataError, match=rf"x\.txt: {problem}"):
        trace_file.read(tmp_path / "x.txt")


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: cannot read: No such file"):
        trace_file.read(tmp_path / "none.txt")
    with pytest.raises(DataError, match="cannot read: Is a directory"):
        trace_file.read(tmp_path)


def test_what_is_written_is_read_again(tmp_path):
    trace = trace_file.parse(TRACE)
    trace_file.write(tmp_path / "t.txt", trace)
    assert trace_file.read(tmp_path / "t.txt").nodes == trace.nodes


def test_writes_the_published_lines(tmp_path):
    trace_file.write(tmp_path / "t.txt", Trace((Node("a b", (Output(1, 4, 256, "", 9),)), Node("c", ()))))
    assert (tmp_path / "t.txt").read_text() == "SrcNode a_b 1\nOutput 1 4 256 unknown 9\nSrcNode c 0\n"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        trace_file.write(tmp_path / "file" / "t.txt", Trace(()))


def stats(name: str, start: int, *sizes: int) -> SimpleNamespace:
    """A runtime's record of one operation."""
    outputs = [
        SimpleNamespace(
            slot=slot,
            tensor_description=SimpleNamespace(
                allocation_description=SimpleNamespace(requested_bytes=size, allocated_bytes=2 * size, allocator_name="bfc")
            ),
        )
        for slot, size in enumerate(sizes)
    ]
    return SimpleNamespace(node_name=name, all_start_micros=start, output=outputs)


def test_takes_the_records_of_all_devices_in_order_but_for_kernels():
    devices = [
        SimpleNamespace(device="/job:localhost/device:GPU:0", node_stats=[stats("late", 30, 4, 8)]),
        SimpleNamespace(device="/job:localhost/device:CPU:0", node_stats=[stats("early", 20), stats("first", 10, 1)]),
        SimpleNamespace(device="/device:GPU:0/stream:all", node_stats=[stats("late:MatMul", 31, 4)]),
    ]
    trace = trace_file.from_run_metadata(SimpleNamespace(step_stats=SimpleNamespace(dev_stats=devices)))
    assert trace.nodes == (
        Node("first", (Output(0, 1, 2, "bfc", 10),)),
        Node("early", ()),
        Node("late", (Output(0, 4, 8, "bfc", 30), Output(1, 8, 16, "bfc", 30))),
    )
