from __future__ import annotations

from bert_tf.profiling.memory import implied_sizes
from bert_tf.profiling.memory.implied_sizes import Evidence
from bert_tf.profiling.memory.trace_file import Node, Output, Trace, parse
from tests.profiling.excerpt import TRACE


def trace(**sizes: int) -> Trace:
    """A trace of the first outputs of these operations; two underlines stand for a slash."""
    return Trace(tuple(Node(name.replace("__", "/"), (Output(0, size, size, "a", 1),)) for name, size in sizes.items()))


def test_reads_the_sizes_off_the_bytes():
    sizes = implied_sizes.infer(parse(TRACE))
    assert {name: size.value for name, size in sizes.items()} == {
        "hidden_size": 8,
        "vocabulary": 15,
        "tokens": 12,
        "batch": 3,
        "sequence_length": 4,
        "heads": 2,
        "predictions_per_sequence": 2,
        "layers": 2,
        "parameters": 151,  # 8 + 8 + 15 x 8 + 15
    }
    assert not any(size.doubts for size in sizes.values())


def test_names_the_output_that_a_size_was_read_off():
    first = implied_sizes.infer(parse(TRACE))["sequence_length"].evidence[0]
    assert first == Evidence("bert/encoder/mul", 192, "sequence_length 4 x tokens 12 x 4", 4)


def test_evidence_that_disagrees_is_a_doubt():
    found = implied_sizes.infer(trace(cls__predictions__output_bias=60, bert__embeddings__LayerNorm__beta=32))
    assert (found["vocabulary"].value, found["vocabulary"].doubts) == (15, ())
    more = implied_sizes.infer(parse(TRACE.replace("Output 0 60 256", "Output 0 64 256")))
    assert more["vocabulary"].value == 16
    assert [doubt.value for doubt in more["vocabulary"].doubts] == [15]


def test_the_largest_layer_decides_where_one_computes_less():
    found = implied_sizes.infer(
        trace(
            bert__embeddings__LayerNorm__beta=32,
            bert__encoder__layer_0__attention__self__query__BiasAdd=384,
            bert__encoder__layer_1__attention__self__query__BiasAdd=384,
            bert__encoder__layer_2__attention__self__query__BiasAdd=96,
        )
    )
    assert found["tokens"].value == 12


def test_bytes_that_are_no_whole_number_of_rows_say_nothing():
    found = implied_sizes.infer(trace(bert__embeddings__LayerNorm__beta=32, bert__pooler__dense__MatMul=100))
    assert "batch" not in found


def test_counts_each_variable_once():
    assert implied_sizes.held_bytes(parse(TRACE)) == {"weights": 32 + 32 + 480 + 60, "optimizer_state": 480}


def test_handles_are_no_sizes():
    handles = trace(
        bert__pooler__dense__kernel=200, bert__pooler__dense__bias=200, bert__embeddings__LayerNorm__beta=200, other=4
    )
    assert implied_sizes.held_bytes(handles) is None
    assert implied_sizes.infer(handles) == {}


def test_half_precision_halves_products_only():
    query = "bert__encoder__layer_0__attention__self__query__"
    found = implied_sizes.infer(
        trace(
            **{f"{query}Cast_1__ReadVariableOp": 32, f"{query}Cast": 128, f"{query}BiasAdd": 192},
            bert__pooler__Tanh=96,
        )
    )
    assert found["tokens"].evidence[0].reading == "tokens 12 x hidden_size 8 x 2"
    assert "batch" not in found  # the pooler may compute in either


def test_of_a_batch_in_parts_the_sizes_are_those_of_a_part():
    found = implied_sizes.infer(
        trace(
            IteratorGetNext=96,
            while__body___10__head_1__Loss__SparseSoftmaxCrossEntropyWithLogits=12,
            while__body___10__bert__mul=48,
        )
    )
    assert {name: size.value for name, size in found.items()} == {"batch": 3, "sequence_length": 4}


def test_the_texts_are_the_largest_of_a_batch():
    found = implied_sizes.infer(
        Trace(
            (
                Node("IteratorGetNext", (Output(0, 4, 0, "a", 1), Output(1, 48, 0, "a", 1), Output(2, 12, 0, "a", 1))),
                Node("head_1/Loss/SparseSoftmaxCrossEntropyWithLogits", (Output(0, 12, 12, "a", 2),)),
            )
        )
    )
    assert found["sequence_length"].evidence[0] == Evidence("IteratorGetNext:1", 48, "sequence_length 4 x batch 3 x 4", 4)
