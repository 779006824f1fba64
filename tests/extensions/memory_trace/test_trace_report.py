"""Memory traces: the file, its report, and the comparison of two."""

import json
import sys
from types import SimpleNamespace

import pytest

from bert_tf.errors import BertError, DataError, OutputError
from bert_tf.extensions.memory_trace import pictures, trace_file, trace_report
from bert_tf.extensions.memory_trace.trace_file import Output, Skipped, Trace, parse
from tests.profiling.excerpt import ALLOCATED, NODES, OUTPUTS, PHASES, REQUESTED, SLACK, TRACE

WANTED = "malformed: expected Output, slot, requested, allocated, allocator, time"
QUERY = "bert/encoder/layer_0/attention/self/query/MatMul"


def total(outputs, requested, allocated):
    return {"outputs": outputs, "requested_bytes": requested, "allocated_bytes": allocated}


def test_reads_on_after_lines_that_it_cannot_use():
    trace = parse(TRACE)
    assert (len(trace.nodes), len(list(trace.outputs()))) == (NODES, OUTPUTS)
    assert trace.nodes[7] == (QUERY, (Output(0, 384, 512, "GPU_0_bfc", 1100),))
    assert trace.skipped == (
        Skipped(13, "no outputs", "SrcNode group_deps 0"),
        Skipped(28, "malformed: no allocator", "Output 1 0 0  1124"),
    )
    assert parse(TRACE.replace("\n", "\r\n\r\n")).nodes == trace.nodes


@pytest.mark.parametrize(
    ("text", "times", "skipped"),
    [
        *(
            (f"SrcNode a 2\nOutput 0 4 4 bfc 8\n{line}\nSrcNode b 1\nOutput 0 8 8 bfc 9", [8, 9], [(3, problem)])
            for line, problem in (
                ("Output 1 4 4 bfc", WANTED),
                ("Output 1 four 4 bfc 9", WANTED),
                ("Output 1 -4 4 bfc 9", WANTED),
                (f"Output 1 {'9' * 20} 4 bfc 9", WANTED),
                ("Output 1 4 4 bfc ٣", WANTED),
                ("Output 1 4  bfc 9", "malformed: no allocated"),
            )
        ),
        ("SrcNode a 1\nInput 1 4 4 bfc 9\nOutput 0 4 4 bfc 9", [9], [(2, "malformed: neither SrcNode nor Output")]),
        # Of a time a cut file has only the first digits.
        ("SrcNode a 2\nOutput 0 4 4 bfc 15613\nOutput 1 4 4 bfc 156", [15613], [(3, "malformed: cut off")]),
        (
            "SrcNode a 1\nOutput 0 4 4 bfc 9\nSrcNode b\nOutput 0 8 8 bfc 9\n",
            [9],
            [(3, "malformed: expected SrcNode, name, number of outputs"), (4, "malformed: an output of no operation")],
        ),
        (
            "SrcNode a 2\nOutput 0 4 4 bfc 8\nSrcNode b 1\nOutput 0 4 4 bfc 9\n",
            [8, 9],
            [(1, "miscounted: 2 outputs announced, 1 found")],
        ),
    ],
)
def test_names_what_a_damaged_file_lacks_and_keeps_the_rest(text, times, skipped):
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
            trace_file.read_trace(path)


def test_writes_the_published_lines(tmp_path):
    trace_file.write(tmp_path / "t.txt", Trace((("a b", (Output(1, 4, 256, "", 9),)), ("c", ()))))
    assert (tmp_path / "t.txt").read_text() == "SrcNode a_b 1\nOutput 1 4 256 unknown 9\nSrcNode c 0\n"
    trace_file.write(tmp_path / "t.txt", parse(TRACE))
    assert trace_file.read_trace(tmp_path / "t.txt").nodes == parse(TRACE).nodes
    with pytest.raises(OutputError, match="cannot write"):
        trace_file.write(tmp_path / "t.txt" / "t.txt", Trace(()))


def stats(name, start, *sizes):
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
        ("first", (Output(0, 1, 2, "bfc", 10),)),
        ("early", ()),
        ("late", (Output(0, 4, 8, "bfc", 30), Output(1, 8, 16, "bfc", 30))),
    )


@pytest.fixture(scope="module")
def report():
    return trace_report.make_report(parse(TRACE), depth=3, largest=2, intervals=5)


def test_every_byte_is_of_one_phase_one_allocator_and_one_layer(report):
    printed = json.loads(json.dumps(trace_report.as_json(report)))
    assert list(printed) == [
        *("nodes", "outputs", "requested_bytes", "allocated_bytes", "slack_bytes", "lent_bytes", "duration_us", "held"),
        *("by_allocator", "by_phase", "by_layer", "by_scope", "largest", "timeline", "inferred", "skipped"),
    ]
    assert list(printed.values())[:7] == [NODES, OUTPUTS, REQUESTED, ALLOCATED, SLACK, 480, 500]
    assert printed["held"] == {"weights": 604, "optimizer_state": 480}
    assert {phase: sums["requested_bytes"] for phase, sums in printed["by_phase"].items()} == PHASES
    assert printed["by_phase"]["clip"] == total(1, 480, 512)
    assert printed["by_allocator"] == {"GPU_0_bfc": total(16, REQUESTED - 480, ALLOCATED), "cpu_pool": total(1, 480, 0)}
    assert sum(sums["requested_bytes"] for sums in printed["by_layer"].values()) == REQUESTED
    word_vectors = "bert/embeddings/word_embeddings"
    assert [(row["name"], row["requested_bytes"], row["phase"]) for row in printed["largest"]] == [
        (word_vectors, 480, "weights"), (f"{word_vectors}/read", 480, "weights"),
    ]  # fmt: skip
    assert [skipped["line"] for skipped in printed["skipped"]] == [13, 28]
    assert (printed["inferred"]["batch"]["value"], printed["inferred"]["batch"]["doubts"]) == (3, [])


def test_a_scope_has_all_that_is_below_it_and_the_timeline_every_byte_in_its_interval(report):
    scopes = {scope: sums["requested_bytes"] for scope, sums in report.by_scope.items()}
    layers = 32 + 384 + 384 + 384 + 384
    assert scopes["bert/encoder/layer_0"] == 32 + 384 + 384
    assert scopes["bert/encoder"] == layers + 192
    assert scopes["bert"] == layers + 192 + 32 + 480 * 3 + 96
    assert scopes["(update)"] == 480
    assert max(scope.count("/") for scope in scopes) == 2
    assert list(scopes.values()) == sorted(scopes.values(), reverse=True)
    sums = [sum(interval["requested_bytes"].values()) for interval in report.timeline]
    assert sums == [1564 + 384, 1272 + 384, 480, 480, 480]
    assert [interval["start_us"] for interval in report.timeline] == [0, 101, 201, 301, 401]
    assert report.timeline[2]["requested_bytes"]["backward"] == 480


def test_extreme_traces():
    node = ("a/b", (Output(0, 4, 4, "x", 1),))
    assert trace_report.make_report(Trace((node, node))).by_scope["a"] == total(2, 8, 8)  # it runs twice
    empty = trace_report.make_report(Trace((("a", ()),)))
    assert (empty.requested_bytes, empty.timeline, empty.duration_us) == (0, [], 0)
    assert "1 operations, 0 outputs" in trace_report.describe(empty)
    nodes = (("a/big", (Output(0, 10_000, 1, "x", 1),)), ("b/small", (Output(0, 9, 1, "x", 2),)))
    text = trace_report.describe(trace_report.make_report(Trace(nodes)))
    assert text.count("(1 more below 0.1 %; --json has all)") == 2


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


def test_bytes_with_a_unit():
    texts = {0: "0 bytes", 999: "999 bytes", 1000: "1.00 kB", 23_592_960: "23.6 MB", 440_425_712: "440 MB", 76e9: "76.0 GB"}
    assert {number: trace_report.readable(number) for number in texts} == texts


def test_difference():
    changed = TRACE.replace("Output 0 384 512 GPU_0_bfc 1100", "Output 0 768 768 GPU_0_bfc 1100").replace("Mul_270", "Mul_271")
    pairs = ((parse(text), trace_report.make_report(parse(text))) for text in (TRACE, changed))
    difference = trace_report.compare(*pairs)
    assert list(difference) == ["totals", "by_phase", "by_allocator", "by_layer", "only_a", "only_b", "changed"]
    assert difference["totals"]["requested_bytes"] == {"a": REQUESTED, "b": REQUESTED + 384}
    assert difference["by_phase"]["forward"] == {"a": 1656, "b": 1656 + 384}
    assert difference["changed"] == {"count": 1, "largest": [(f"{QUERY}:0", 384, 768)]}
    assert difference["only_a"] == {"count": 1, "requested_bytes": 480, "largest": [("Mul_270:0", 480)]}
    assert difference["only_b"]["largest"] == [("Mul_271:0", 480)]
    text = trace_report.describe_difference(difference, ("one.txt", "two.txt"))
    for part in ("B  two.txt", "forward             1.66 kB  2.04 kB  +23.2 %", "(5 more, the same or small)", "Mul_271:0"):
        assert part in text


def test_layers_of_a_picture_and_what_draws_it_is_missing(report, monkeypatch, tmp_path):
    bars = pictures._bars(report.layer_phases)  # that pictures are drawn: tests/extensions/test_records.py
    assert sum(sum(by_phase.values()) for by_phase in bars.values()) == REQUESTED
    assert list(bars)[:4] == ["bert/embeddings", "bert/encoder", "layer 0", "layer 1"]
    for module in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BertError, match="draws with matplotlib, which is missing: pip install matplotlib"):
        pictures.draw(tmp_path, report, "a step")
