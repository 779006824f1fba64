"""Memory traces: the file, its report, and the comparison of two."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from bert_tf.errors import BertError, DataError, OutputError
from bert_tf.profiling.memory import pictures, trace_diff, trace_file, trace_report
from bert_tf.profiling.memory.trace_diff import Alone, Changed, Sides
from bert_tf.profiling.memory.trace_file import Node, Output, Skipped, Trace, parse
from bert_tf.profiling.memory.trace_report import Total
from tests.profiling.excerpt import ALLOCATED, NODES, OUTPUTS, PHASES, REQUESTED, SLACK, TRACE


def test_reads_on_after_lines_that_it_cannot_use():
    trace = parse(TRACE)
    assert (len(trace.nodes), len(list(trace.outputs()))) == (NODES, OUTPUTS)
    assert trace.nodes[7] == Node("bert/encoder/layer_0/attention/self/query/MatMul", (Output(0, 384, 512, "GPU_0_bfc", 1100),))
    assert trace.skipped == (
        Skipped(13, "no outputs", "SrcNode group_deps 0"),
        Skipped(28, "malformed: no allocator", "Output 1 0 0  1124"),
    )
    assert parse(TRACE.replace("\n", "\r\n\r\n")).nodes == trace.nodes


WANTED = "malformed: want Output, slot, requested, allocated, allocator, time"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Output 1 4 4 bfc", WANTED),
        ("Output 1 four 4 bfc 9", WANTED),
        ("Output 1 -4 4 bfc 9", WANTED),
        (f"Output 1 {'9' * 20} 4 bfc 9", WANTED),
        ("Output 1 4 4 bfc ٣", WANTED),
        ("Output 1 4  bfc 9", "malformed: no allocated"),
        ("Input 1 4 4 bfc 9", "malformed: neither SrcNode nor Output"),
    ],
)
def test_names_a_malformed_line_and_keeps_its_neighbours(line, problem):
    trace = parse(f"SrcNode a 2\nOutput 0 4 4 bfc 9\n{line}\nSrcNode b 1\nOutput 0 8 8 bfc 9")
    assert [output.requested for _, output in trace.outputs()] == [4, 8]
    assert Skipped(3, problem, line) in trace.skipped


@pytest.mark.parametrize(
    ("text", "times", "skipped"),
    [
        (  # of a time a cut file has only the first digits
            "SrcNode a 2\nOutput 0 4 4 bfc 1561347949594120\nOutput 1 4 4 bfc 15613",
            [1561347949594120],
            [(3, "malformed: cut off")],
        ),
        (
            "SrcNode a 1\nOutput 0 4 4 bfc 9\nSrcNode b\nOutput 0 8 8 bfc 9\n",
            [9],
            [(3, "malformed: want SrcNode, name, number of outputs"), (4, "malformed: an output of no operation")],
        ),
        (
            "SrcNode a 2\nOutput 0 4 4 bfc 8\nSrcNode b 1\nOutput 0 4 4 bfc 9\n",
            [8, 9],
            [(1, "miscounted: 2 outputs announced, 1 found")],
        ),
    ],
)
def test_names_what_a_damaged_file_lacks(text, times, skipped):
    trace = parse(text)
    assert [output.time for _, output in trace.outputs()] == times
    assert [(row.line, row.problem) for row in trace.skipped] == skipped


def test_rejects_other_files(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe\x00")
    for path, problem in (
        (tmp_path / "x.txt", r"x\.txt: no line begins with SrcNode"),
        (tmp_path / "none.txt", r"none\.txt: cannot read: No such file"),
        (tmp_path, "cannot read: Is a directory"),
    ):
        with pytest.raises(DataError, match=problem):
            trace_file.read(path)


def test_writes_the_published_lines(tmp_path):
    trace_file.write(tmp_path / "t.txt", Trace((Node("a b", (Output(1, 4, 256, "", 9),)), Node("c", ()))))
    assert (tmp_path / "t.txt").read_text() == "SrcNode a_b 1\nOutput 1 4 256 unknown 9\nSrcNode c 0\n"
    trace_file.write(tmp_path / "t.txt", parse(TRACE))
    assert trace_file.read(tmp_path / "t.txt").nodes == parse(TRACE).nodes
    with pytest.raises(OutputError, match="cannot write"):
        trace_file.write(tmp_path / "t.txt" / "t.txt", Trace(()))


def stats(name: str, start: int, *sizes: int) -> SimpleNamespace:
    """A runtime's record of one operation."""
    memory = [SimpleNamespace(requested_bytes=size, allocated_bytes=2 * size, allocator_name="bfc") for size in sizes]
    described = [SimpleNamespace(allocation_description=one) for one in memory]
    outputs = [SimpleNamespace(slot=slot, tensor_description=one) for slot, one in enumerate(described)]
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


@pytest.fixture(scope="module")
def report():
    return trace_report.make_report(parse(TRACE), depth=3, largest=2, intervals=5)


def test_totals(report):
    assert (report.nodes, report.total) == (NODES, Total(OUTPUTS, REQUESTED, ALLOCATED))
    assert (report.slack_bytes, report.lent_bytes, report.duration_us) == (SLACK, 480, 500)
    assert report.held == {"weights": 604, "optimizer_state": 480}
    assert [(o.name, o.requested_bytes, o.phase) for o in report.largest] == [
        ("bert/embeddings/word_embeddings", 480, "weights"),
        ("bert/embeddings/word_embeddings/read", 480, "weights"),
    ]


def test_every_byte_is_of_one_phase_one_allocator_and_one_layer(report):
    assert {phase: total.requested_bytes for phase, total in report.by_phase.items()} == PHASES
    assert report.by_allocator == {"GPU_0_bfc": Total(16, REQUESTED - 480, ALLOCATED), "cpu_pool": Total(1, 480, 0)}
    assert sum(total.requested_bytes for total in report.by_layer.values()) == REQUESTED
    assert sum(sum(by_phase.values()) for by_phase in report.layer_phases.values()) == REQUESTED


def test_a_scope_has_all_that_is_below_it(report):
    scopes = {scope: total.requested_bytes for scope, total in report.by_scope.items()}
    layers = 32 + 384 + 384 + 384 + 384
    assert scopes["bert/encoder/layer_0"] == 32 + 384 + 384
    assert scopes["bert/encoder"] == layers + 192
    assert scopes["bert"] == layers + 192 + 32 + 480 * 3 + 96
    assert scopes["(update)"] == 480
    assert max(scope.count("/") for scope in scopes) == 2
    assert list(scopes.values()) == sorted(scopes.values(), reverse=True)


def test_the_timeline_has_every_byte_in_its_interval(report):
    assert [interval.start_us for interval in report.timeline] == [0, 101, 201, 301, 401]
    assert [sum(interval.requested_bytes.values()) for interval in report.timeline] == [1564 + 384, 1272 + 384, 480, 480, 480]
    assert report.timeline[2].requested_bytes["backward"] == 480


def test_extreme_traces():
    node = Node("a/b", (Output(0, 4, 4, "x", 1),))
    assert trace_report.make_report(Trace((node, node))).total == Total(2, 8, 8)  # it runs twice
    empty = trace_report.make_report(Trace((Node("a", ()),)))
    assert (empty.total, empty.timeline, empty.duration_us) == (Total(0, 0, 0), (), 0)
    assert "1 operations, 0 outputs" in trace_report.describe(empty)
    nodes = (Node("a/big", (Output(0, 10_000, 1, "x", 1),)), Node("b/small", (Output(0, 9, 1, "x", 2),)))
    text = trace_report.describe(trace_report.make_report(Trace(nodes)))
    assert text.count("(1 more below 0.1 %; --json has all)") == 2


def test_report_as_json(report):
    found = json.loads(json.dumps(trace_report.as_json(report)))
    assert list(found) == [
        *("nodes", "outputs", "requested_bytes", "allocated_bytes", "slack_bytes", "lent_bytes", "duration_us", "held"),
        *("by_allocator", "by_phase", "by_layer", "by_scope", "largest", "timeline", "inferred", "skipped"),
    ]
    assert (found["requested_bytes"], found["held"]) == (REQUESTED, {"weights": 604, "optimizer_state": 480})
    assert found["by_phase"]["clip"] == {"outputs": 1, "requested_bytes": 480, "allocated_bytes": 512}
    assert found["largest"][0]["phase"] == "weights"
    assert found["timeline"][2]["start_us"] == 201
    assert [skipped["line"] for skipped in found["skipped"]] == [13, 28]
    assert (found["inferred"]["batch"]["value"], found["inferred"]["batch"]["doubts"]) == (3, [])


def test_report_as_text(report):
    text = trace_report.describe(report)
    for part in (
        "18 operations, 17 outputs, 0.5 ms from the first to the last",
        "requested              5,044 bytes  5.04 kB",
        "weights 604 bytes, optimizer state 480 bytes",
        "optimizer state        1  480 bytes  512 bytes   9.5 %",
        "0.3 ms  480 bytes  #######                         clip 100.0 %\n",
        "cls/seq_relationship/MatMul: 24 bytes = batch 3 x 2 x 4",
        "line 28: malformed: no allocator in: Output 1 0 0  1124",
        "line 13: no outputs in: SrcNode group_deps 0",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (23_592_960, "23.6 MB"),
        (440_425_712, "440 MB"),
        (76e9, "76.0 GB"),
    ],
)
def test_bytes_with_a_unit(number, text):
    assert trace_report.readable(number) == text


def compared(other):
    return trace_diff.compare(*((parse(text), trace_report.make_report(parse(text))) for text in (TRACE, other)))


def test_difference():
    changed = TRACE.replace("Output 0 384 512 GPU_0_bfc 1100", "Output 0 768 768 GPU_0_bfc 1100").replace("Mul_270", "Mul_271")
    difference = compared(changed)
    assert difference.totals["requested_bytes"] == Sides(REQUESTED, REQUESTED + 384)
    assert difference.groups["by_phase"]["forward"] == Sides(1656, 1656 + 384)
    assert difference.changed == Changed(1, (("bert/encoder/layer_0/attention/self/query/MatMul:0", 384, 768),))
    assert difference.only_a == Alone(1, 480, (("Mul_270:0", 480),))
    assert difference.only_b == Alone(1, 480, (("Mul_271:0", 480),))
    text = trace_diff.describe(difference, ("one.txt", "two.txt"))
    for part in ("B  two.txt", "forward             1.66 kB  2.04 kB  +23.2 %", "(5 more, the same or small)", "Mul_271:0"):
        assert part in text


def test_nothing_differs_from_itself():
    found = json.loads(json.dumps(trace_diff.as_json(compared(TRACE))))
    assert list(found) == ["totals", "by_phase", "by_allocator", "by_layer", "only_a", "only_b", "changed"]
    assert found["changed"] == {"count": 0, "largest": []}
    assert found["only_a"] == found["only_b"] == {"count": 0, "requested_bytes": 0, "largest": []}
    assert all(sides["a"] == sides["b"] for sides in found["totals"].values())


def test_draws_two_pictures(tmp_path, report):
    pytest.importorskip("matplotlib")
    paths = pictures.draw(tmp_path / "new", report, "a step")
    assert [path.name for path in paths] == ["memory_over_time.png", "memory_by_layer.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    bars = pictures._bars(report.layer_phases)
    assert sum(sum(by_phase.values()) for by_phase in bars.values()) == REQUESTED
    assert list(bars)[:4] == ["bert/embeddings", "bert/encoder", "layer 0", "layer 1"]


def test_missing_matplotlib_is_one_line(monkeypatch, tmp_path, report):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BertError, match="draws with matplotlib, which is missing: pip install matplotlib"):
        pictures.draw(tmp_path, report, "a step")
