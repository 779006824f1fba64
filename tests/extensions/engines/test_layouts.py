"""Real tokens as rows of an ONNX graph, computed by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

from bert_tf.extensions.engines.encoder import Packed, encode  # noqa: E402
from bert_tf.extensions.engines.onnx_graph import OnnxGraph  # noqa: E402
from tests.modeling.test_positions import CONFIGS, weights_of  # noqa: E402

# Sequences of 3, 1 and 2 tokens; all masked, and so not masked at all; the first masked, but computed.
MASK = [[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]]
IDS = [[10, 11, 12], [20, 0, 0], [30, 31, 0], [40, 41, 42], [50, 51, 0]]
REAL = [10, 11, 12, 20, 30, 31, 40, 41, 42, 50, 51]


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
    (values,) = session.run(None, {"input_mask": np.array(MASK, np.int32), "tokens": np.array(tokens, np.float32)})
    return values.tolist()


def vectors(numbers):
    """Vectors of two elements: a number and its negative."""
    return np.stack([numbers, np.negative(numbers)], axis=-1).tolist()


def test_rows_are_the_real_tokens():
    assert computed(lambda layout, tokens: layout.of_tokens(tokens), IDS, rank=2) == [REAL]
    assert computed(lambda layout, tokens: layout.pack(tokens), vectors(IDS)) == [vectors(REAL)]


def test_what_all_sequences_share_is_that_of_each_row():
    assert computed(lambda layout, tokens: layout.of_tokens(tokens), [0, 1, 2], rank=2) == [[0, 1, 2, 0, 0, 1, 0, 1, 2, 0, 1]]


def test_rows_become_tokens_again():
    unpacked = np.array(computed(lambda layout, tokens: layout.unpack(layout.pack(tokens)), vectors(IDS)))
    real = np.maximum(MASK, np.all(np.equal(MASK, 0), axis=1)[:, None]) > 0
    real[:, 0] = True
    assert unpacked.shape == (5, 3, 2)
    np.testing.assert_array_equal(unpacked[real], vectors(REAL))


def test_the_first_rows():
    firsts = computed(lambda layout, tokens: layout.first(layout.pack(tokens)), vectors(IDS))
    assert firsts == [[vector] for vector in vectors([10, 20, 30, 40, 50])]


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("kind", CONFIGS)
def test_packed_encoders_compute_what_padded_ones_do(kind, first_only):
    config, random = CONFIGS[kind], np.random.default_rng(0)
    lengths = (7, 4, 1)
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int32)
    ids = random.integers(0, config.vocab_size, mask.shape).astype(np.int32)
    batch = {"input_ids": ids, "input_mask": mask, "segment_ids": ids % 2}

    def encoded(packs):
        graph = OnnxGraph(weights_of(config))
        nodes = encode(graph, config, first_only=first_only, packs=packs)
        outputs = [nodes.pooled, *nodes.layers, nodes.transformed]
        for number, output in enumerate(outputs):
            graph.add("Identity", output, name=f"output_{number}")
        shapes = [["rows", "width"]] + [["rows", "tokens", "width"]] * (len(outputs) - 1)
        inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.INT32, ["rows", "tokens"]) for name in batch]
        values = (
            helper.make_tensor_value_info(f"output_{number}", onnx.TensorProto.FLOAT, shape)
            for number, shape in enumerate(shapes)
        )
        session = onnxruntime.InferenceSession(
            graph.model(inputs, list(values)).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        read = {value.name for value in session.get_inputs()}
        return session.run(None, {name: value for name, value in batch.items() if name in read})

    for packed, padded in zip(encoded(True), encoded(False)):
        real = mask[:, : packed.shape[1]] > 0 if packed.ndim == 3 else slice(None)  # the first tokens alone, or all
        np.testing.assert_allclose(packed[real], padded[real], atol=1e-5)
