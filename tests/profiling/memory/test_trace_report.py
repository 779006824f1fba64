from __future__ import annotations

import json
import sys

import pytest

from bert_tf.errors import BertError
from bert_tf.profiling.memory import pictures, trace_diff, trace_report, trace_text
from bert_tf.profiling.memory.trace_file import Node, Output, Trace, parse
from tests.profiling.excerpt import ALLOCATED, NODES, OUTPUTS, PHASES, REQUESTED, SLACK, TRACE


@pytest.fixture(scope="module")
def report():
    return trace_report.make_report(parse(TRACE), depth=3, largest=2, intervals=5)


def test_totals(report):
    assert report.nodes == NODES
    assert report.total == (OUTPUTS, REQUESTED, ALLOCATED)
    assert report.slack_bytes == SLACK
    assert report.lent_bytes == 480
    assert report.duration_us == 500
    assert report.held == (604, 480)


def test_every_byte_is_of_one_phase_one_allocator_and_one_layer(report):
    assert {phase: total.requested_bytes for phase, total in report.by_phase.items()} == PHASES
    assert report.by_allocator == {"GPU_0_bfc": (16, REQUESTED - 480, ALLOCATED), "cpu_pool": (1, 480, 0)}
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


def test_names_the_largest_outputs(report):
    assert [(o.name, o.requested_bytes, o.phase) for o in report.largest] == [
        ("bert/embeddings/word_embeddings", 480, "weights"),
        ("bert/embeddings/word_embeddings/read", 480, "weights"),
    ]


def test_the_timeline_has_every_byte_in_its_interval(report):
    assert [interval.start_us for interval in report.timeline] == [0, 101, 201, 301, 401]
    assert [sum(interval.requested_bytes.values()) for interval in report.timeline] == [1564 + 384, 1272 + 384, 480, 480, 480]
    assert report.timeline[2].requested_bytes["backward"] == 480


def test_an_operation_that_runs_twice_counts_twice():
    node = Node("a/b", (Output(0, 4, 4, "x", 1),))
    assert trace_report.make_report(Trace((node, node))).total == (2, 8, 8)


def test_a_trace_without_outputs_has_a_report():
    report = trace_report.make_report(Trace((Node("a", ()),)))
    assert (report.total, report.timeline, report.duration_us) == ((0, 0, 0), (), 0)
    assert "1 operations, 0 outputs" in trace_text.describe(report)


def test_json_has_the_promised_keys(report):
    found = json.loads(json.dumps(trace_report.as_json(report)))
    assert found["requested_bytes"] == REQUESTED
    assert found["by_phase"]["clip"] == {"outputs": 1, "requested_bytes": 480, "allocated_bytes": 512}
    assert [skipped["line"] for skipped in found["skipped"]] == [13, 28]
    assert found["inferred"]["batch"]["value"] == 3
    assert found.keys() >= {"nodes", "outputs", "allocated_bytes", "duration_us", "by_allocator", "by_scope"}


def test_text_says_what_was_found(report):
    text = trace_text.describe(report)
    for part in (
        "18 operations, 17 outputs, 0.5 ms from the first to the last",
        "requested              5,044 bytes  5.04 kB",
        "optimizer state        1  480 bytes  512 bytes   9.5 %",
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
    assert trace_text.readable(number) == text


def test_small_scopes_stand_in_one_line():
    nodes = (Node("a/big", (Output(0, 10_000, 1, "x", 1),)), Node("b/small", (Output(0, 9, 1, "x", 2),)))
    text = trace_text.describe(trace_report.make_report(Trace(nodes)))
    assert text.count("(1 more below 0.1 %; --json has all)") == 2


@pytest.fixture(scope="module")
def difference():
    changed = TRACE.replace("Output 0 384 512 GPU_0_bfc 1100", "Output 0 768 768 GPU_0_bfc 1100").replace("Mul_270", "Mul_271")
    return trace_diff.compare(*((parse(text), trace_report.make_report(parse(text))) for text in (TRACE, changed)))


def test_difference(difference):
    assert difference.totals["requested_bytes"] == (REQUESTED, REQUESTED + 384)
    assert difference.groups["by_phase"]["forward"] == (1656, 1656 + 384)
    assert difference.changed == (("bert/encoder/layer_0/attention/self/query/MatMul:0", 384, 768),)
    assert difference.only_a == (1, 480, (("Mul_270:0", 480),))
    assert difference.only_b == (1, 480, (("Mul_271:0", 480),))


def test_difference_as_text(difference):
    text = trace_text.describe_difference(difference, ("one.txt", "two.txt"))
    assert "B  two.txt" in text
    assert "forward             1.66 kB  2.04 kB  +23.2 %" in text
    assert "(5 more, the same or small)" in text
    assert "Mul_271:0" in text


def test_nothing_differs_from_itself():
    one = parse(TRACE), trace_report.make_report(parse(TRACE))
    found = trace_diff.compare(one, one)
    assert (found.changed_count, found.only_a.count, found.only_b.count) == (0, 0, 0)
    assert all(a == b for a, b in found.totals.values())
    assert json.loads(json.dumps(trace_diff.as_json(found)))["changed"] == {"count": 0, "largest": []}


def test_draws_two_pictures(tmp_path, report):
    pytest.importorskip("matplotlib")
    paths = pictures.draw(tmp_path / "new", report, "a step")
    assert [path.name for path in paths] == ["memory_over_time.png", "memory_by_layer.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_what_is_drawn_is_the_whole_of_it(report):
    bars = pictures._bars(report.layer_phases)
    assert sum(sum(by_phase.values()) for by_phase in bars.values()) == REQUESTED
    assert list(bars)[:4] == ["bert/embeddings", "bert/encoder", "layer 0", "layer 1"]


def test_missing_matplotlib_is_one_line(monkeypatch, tmp_path, report):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BertError, match="draws with matplotlib, which is missing: pip install matplotlib"):
        pictures.draw(tmp_path, report, "a step")
