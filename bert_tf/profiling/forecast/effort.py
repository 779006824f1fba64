"""Relative time of a step, estimated by the multiplications of the encoder. Imports no TensorFlow."""

from __future__ import annotations

from typing import NamedTuple

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.compute_options import EMBEDDINGS, ComputeOptions

# Of each part of a batch after the first: gradients are added up, and a small batch uses a device less well. An assumption:
# a GPU that small parts leave idle loses more.
_PER_PART = 0.01


class Step(NamedTuple):
    tokens: int  # sequence length
    batch_size: int  # over all replicas and micro-batches
    options: ComputeOptions


def slowdown(config: BertConfig, asked: Step, other: Step) -> float:
    """Time per example of `other` relative to `asked`; half precision counts as no faster (device-dependent)."""
    return _of_example(config, other) / _of_example(config, asked)


def _of_example(config: BertConfig, step: Step) -> float:
    """Returns the multiplications per example: one pass for the output, one more for each gradient."""
    frozen, last = step.options.frozen, config.num_hidden_layers - 1
    trained = [number for number in range(last + 1) if number not in frozen]
    lowest = 0 if EMBEDDINGS not in frozen else min(trained, default=last + 1)  # down to where gradients are wanted
    passes = 0
    for number in range(last + 1):
        again = step.options.recompute and lowest <= number < last
        passes += 1 + (number >= lowest) + (number not in frozen) + again
    return passes * _of_layer(config, step.tokens) * (1.0 + _PER_PART * (step.options.micro_batches - 1))


def _of_layer(config: BertConfig, tokens: int) -> int:
    dense = 4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size
    return tokens * (dense + 2 * tokens * config.hidden_size)
