"""Real tokens as rows of an ONNX graph, computed by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

from bert_tf.extensions.engines.layouts import Packed  # noqa: E402
from bert_tf.extensions.engines.onnx_graph import OnnxGraph  # noqa: E402

# Sequences of 3, 1 and 2 tokens; the last is all masked, and so not masked at all.
MASK = [[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]]
IDS = [[10, 11, 12], [20, 0, 0], [30, 31, 0], [40, 41, 42]]
REAL = [10, 11, 12, 20, 30, 31, 40, 41, 42]


def computed(build, tokens, rank=3):
    """Runs `build`, which gets a layout and the name of the tokens, on IDS or vectors of them."""
    graph = OnnxGraph({})
    output = graph.add("Identity", build(Packed(graph), "tokens"), name="output")
    described = [
        helper.make_tensor_value_info("input_mask", onnx.TensorProto.INT32, ["rows", "tokens"]),
        helper.make_tensor_value_info("tokens", onnx.TensorProto.FLOAT, [None] * np.ndim(tokens)),
    ]
    shape = ["rows", "columns", "width"][:rank]
    model = graph.model(described, [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_mask": np.array(MASK, np.int32), "tokens": np.array(tokens, np.float32)})
    return found.tolist()


def vectors(numbers):
    """Vectors of two elements: a number and its negative."""
    return np.stack([numbers, np.negative(numbers)], axis=-1).tolist()


def test_rows_are_the_real_tokens():
    assert computed(lambda layout, tokens: layout.of_tokens(tokens), IDS, rank=2) == [REAL]
    assert computed(lambda layout, tokens: layout.pack(tokens), vectors(IDS)) == [vectors(REAL)]


def test_what_all_sequences_share_is_that_of_each_row():
    assert computed(lambda layout, tokens: layout.of_tokens(tokens), [0, 1, 2], rank=2) == [[0, 1, 2, 0, 0, 1, 0, 1, 2]]


def test_rows_become_tokens_again():
    found = np.array(computed(lambda layout, tokens: layout.unpack(layout.pack(tokens)), vectors(IDS)))
    real = np.maximum(MASK, np.all(np.equal(MASK, 0), axis=1)[:, None]) > 0
    assert found.shape == (4, 3, 2)
    np.testing.assert_array_equal(found[real], vectors(REAL))


def test_the_first_rows():
    found = computed(lambda layout, tokens: layout.first(layout.pack(tokens)), vectors(IDS))
    assert found == [[vector] for vector in vectors([10, 20, 30, 40])]
