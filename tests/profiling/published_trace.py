"""Looks up what the forecast expects to be kept in a memory trace of the published implementation.

    python -m tests.profiling.published_trace FILE

The sizes of model and batch are those that the trace implies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import Shape, layer_blocks
from bert_tf.profiling.forecast.compute_options import PUBLISHED
from bert_tf.profiling.forecast.step_peak import forecast
from bert_tf.profiling.memory import implied_sizes, trace_file

# The operation of google-research/bert's modeling.py (TensorFlow 1.x) that puts out each tensor, below its layer.
ATTENTION = {
    "query": "attention/self/transpose",
    "key": "attention/self/transpose_1",
    "value": "attention/self/transpose_2",
    "weights": "attention/self/Softmax",
    "mask of weights": "attention/self/dropout/Floor",
    "dropped weights": "attention/self/dropout/mul",
    "joined": "attention/self/Reshape_3",
    "centered": "attention/output/add",
    "normal": "attention/output/LayerNorm/batchnorm/mul",
    "scale": "attention/output/LayerNorm/batchnorm/Rsqrt",
    "output": "attention/output/LayerNorm/batchnorm/add_1",
    "mask": "attention/output/dropout/Floor",
}
FEED_FORWARD = {
    "input": "intermediate/dense/BiasAdd",
    "derivative of the cube": "intermediate/dense/Pow_grad/Pow",
    "tanh": "intermediate/dense/Tanh",
    "distribution": "intermediate/dense/mul_2",
    "activated": "intermediate/dense/mul_3",
    "centered": "output/add",
    "normal": "output/LayerNorm/batchnorm/mul",
    "scale": "output/LayerNorm/batchnorm/Rsqrt",
    "output": "output/LayerNorm/batchnorm/add_1",
    "mask": "output/dropout/Floor",
}


def config_of(sizes: Mapping[str, int]) -> BertConfig:
    """Returns the model of implied sizes."""
    return BertConfig(
        vocab_size=sizes["vocabulary"],
        hidden_size=sizes["hidden_size"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["intermediate_size"],
        max_position_embeddings=sizes["positions"],
    )


def lines(path: str) -> Iterator[str]:
    """Yields how much of the forecast is in the trace, and what is not."""
    trace = trace_file.read(path)
    sizes = {name: size.value for name, size in implied_sizes.infer(trace).items()}
    config = config_of(sizes)
    requested = {name: output.requested for name, output in trace.outputs() if output.slot == 0}
    blocks = layer_blocks(
        Shape(sizes["batch"], sizes["sequence_length"], sizes["tokens"]), config, custom_gradients=False, selected=None
    )
    same, other = [], []
    for layer in range(config.num_hidden_layers):
        for names, block in zip((ATTENTION, FEED_FORWARD), blocks):
            for tensor, expected in block.kept.items():
                name = operation(names[tensor], layer)
                (same if requested.get(name) == expected else other).append((name, requested.get(name), expected))
    together = sum(expected for *_, expected in same)
    yield f"{len(same)} of {len(same) + len(other)} activations have the size of the forecast, {together:,} bytes"
    yield from (f"{name}: {found} bytes, the forecast has {expected}" for name, found, expected in other)
    found = forecast(config, tokens=sizes["sequence_length"], batch_size=sizes["batch"], options=PUBLISHED)
    slots = sum(size for name, size in requested.items() if name.endswith(("/adam_m", "/adam_v")))
    yield f"slots of Adam: {slots:,} bytes, the forecast with a classifier's head has {found.slots:,}"


def operation(name: str, layer: int) -> str:
    """Returns the whole name of an operation of a layer."""
    scope = "gradients/" if "_grad/" in name else ""
    return f"{scope}bert/encoder/layer_{layer}/{name}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines(sys.argv[1]))
