import pytest

from bert_tf.extensions.memory_trace import implied_sizes
from bert_tf.extensions.memory_trace.implied_sizes import Evidence
from bert_tf.extensions.memory_trace.trace_file import Output, Trace, parse
from tests.profiling.excerpt import TRACE

QUERY = "bert/encoder/layer_{}/attention/self/query/"
FIRST, LENGTH = QUERY.format(0), "sequence_length"
NORM = {"bert/embeddings/LayerNorm/beta": 32}  # hidden size 8


def trace(**sizes):
    """A trace of operations, each with its outputs of these sizes."""
    listed = {name: size if isinstance(size, tuple) else (size,) for name, size in sizes.items()}
    return Trace(tuple((name, tuple(Output(n, s, s, "a", 1) for n, s in enumerate(each))) for name, each in listed.items()))


def values(sizes):
    return {name: size.value for name, size in sizes.items()}


def test_reads_the_sizes_off_the_bytes():
    sizes = implied_sizes.infer(parse(TRACE))
    assert values(sizes) == {
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
    assert implied_sizes.held_bytes(parse(TRACE)) == {"weights": 32 + 32 + 480 + 60, "optimizer_state": 480}  # each once


def test_evidence_that_disagrees_is_a_doubt():
    vocabulary = implied_sizes.infer(parse(TRACE.replace("Output 0 60 256", "Output 0 64 256")))["vocabulary"]
    assert (vocabulary.value, [doubt.value for doubt in vocabulary.doubts]) == (16, [15])


def test_handles_are_no_sizes():
    handles = dict.fromkeys(("bert/pooler/dense/kernel", "bert/pooler/dense/bias", "bert/embeddings/LayerNorm/beta"), 200)
    assert implied_sizes.held_bytes(trace(**handles, other=4)) is None
    assert implied_sizes.infer(trace(**handles, other=4)) == {}


# Of three layers the last computes less.
THREE_LAYERS = {**NORM, **{f"{QUERY.format(layer)}BiasAdd": size for layer, size in enumerate((384, 384, 96))}}
HALF = {f"{FIRST}Cast_1/ReadVariableOp": 32, f"{FIRST}Cast": 128, f"{FIRST}BiasAdd": 192}
BATCH = "head_1/Loss/SparseSoftmaxCrossEntropyWithLogits"
TEXTS = {"IteratorGetNext": (4, 48, 12), BATCH: 12}
IN_PARTS = {"IteratorGetNext": 96, "while/body/_10/bert/mul": 48, f"while/body/_10/{BATCH}": 12}


@pytest.mark.parametrize(
    ("sizes", "name", "evidence"),
    [
        (None, LENGTH, Evidence("bert/encoder/mul", 192, "sequence_length 4 x tokens 12 x 4", 4)),
        (THREE_LAYERS, "tokens", Evidence(f"{FIRST}BiasAdd", 384, "tokens 12 x hidden_size 8 x 4", 12)),
        ({**NORM, "bert/pooler/dense/MatMul": 100}, "batch", None),  # no whole number of rows
        (HALF, "tokens", Evidence(f"{FIRST}BiasAdd", 192, "tokens 12 x hidden_size 8 x 2", 12)),
        ({**NORM, f"{FIRST}Cast": 128, "bert/pooler/Tanh": 96}, "batch", None),  # the pooler may compute in either
        # Of a batch the texts are the largest, and of one in parts the sizes are those of a part.
        (TEXTS, LENGTH, Evidence("IteratorGetNext:1", 48, "sequence_length 4 x batch 3 x 4", 4)),
        (IN_PARTS, LENGTH, Evidence("bert/mul", 48, "sequence_length 4 x batch 3 x 4", 4)),
    ],
)
def test_the_output_that_a_size_is_read_off(sizes, name, evidence):
    size = implied_sizes.infer(parse(TRACE) if sizes is None else trace(**sizes)).get(name)
    assert (size and size.evidence[0]) == evidence
