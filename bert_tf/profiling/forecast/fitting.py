"""Forecasts which batches and micro-batches fit into a device's memory, and the saving of each lever."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import NamedTuple

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import FLOAT
from bert_tf.profiling.forecast.compute_options import BYTES, EMBEDDINGS, POOLER, ComputeOptions, Part
from bert_tf.profiling.forecast.step_peak import Forecast, forecast

LENGTHS = (64, 128, 256, 320, 384, 512)
MEBIBYTE = 1 << 20

HOSTED = "--place=embeddings:/CPU:0"

_LARGEST_BATCH = 1 << 16


class Lever(NamedTuple):
    """A way to reduce memory."""

    flag: str  # of the training command
    options: ComputeOptions  # with this flag


class Bought(NamedTuple):
    """Effect of a lever on a step."""

    flag: str
    peak: int  # bytes
    largest_batch: int


def fits(found: Forecast, memory: int) -> bool:
    return found.needed <= memory


def largest_batch(config: BertConfig, *, tokens: int, memory: int, options: ComputeOptions = ComputeOptions()) -> int:  # noqa: B008
    """Returns the most examples that fit into `memory` bytes; 0 if not even one does."""
    low, high = 0, 1
    while high <= _LARGEST_BATCH and fits(forecast(config, tokens=tokens, batch_size=high, options=options), memory):
        low, high = high, 2 * high
    high = min(high, _LARGEST_BATCH + 1)
    while high - low > 1:
        middle = (low + high) // 2
        fit = fits(forecast(config, tokens=tokens, batch_size=middle, options=options), memory)
        low, high = (middle, high) if fit else (low, middle)
    return low


def fewest_parts(
    config: BertConfig, *, tokens: int, batch_size: int, memory: int, options: ComputeOptions
) -> ComputeOptions | None:
    """Returns the options with the fewest micro-batches that fit, at least as many as now; None if nothing fits."""

    def fit(count: int) -> bool:
        changed = dataclasses.replace(options, micro_batches=count)
        return fits(forecast(config, tokens=tokens, batch_size=batch_size, options=changed), memory)

    least, most = options.micro_batches, batch_size // options.replicas  # so that every part of every replica has an example
    if least > max(1, most):
        return None
    # One part needs no sums of gradients; from two on, more parts never need more.
    count = least if fit(least) else first(least + 1, most, fit)
    return None if count is None else dataclasses.replace(options, micro_batches=count)


def first(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """Returns the least number in [low, high] for which a monotone condition holds; None if there is none."""
    if low > high or not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def levers(config: BertConfig, options: ComputeOptions) -> list[Lever]:
    half_frozen = options.frozen | {EMBEDDINGS, *range(config.num_hidden_layers // 2)}
    changes = (
        (f"--gradient_accumulation_steps={2 * options.micro_batches}", {"micro_batches": 2 * options.micro_batches}),
        (f"--gradient_accumulation_steps={4 * options.micro_batches}", {"micro_batches": 4 * options.micro_batches}),
        ("--recompute", {"recompute": True}),
        ("--precision=bfloat16", {"precision": "bfloat16" if BYTES[options.precision] == FLOAT else options.precision}),
        (f"--freeze={written(half_frozen)}", {"frozen": half_frozen}),
        (HOSTED, {"host_embeddings": True}),
        ("--pack_tokens", {"pack_tokens": True}),
        ("--custom_gradients", {"custom_gradients": True}),
        ("--last_layer_cls_only", {"last_layer_cls_only": True}),
        ("--fused_adam", {"fused_adam": True}),
    )
    changed = (Lever(flag, dataclasses.replace(options, **change)) for flag, change in changes)
    return [lever for lever in changed if lever.options != options]


def written(frozen: Collection[Part]) -> str:
    """Formats parts for --freeze: embeddings,0-5,pooler."""
    layers = sorted(part for part in frozen if isinstance(part, int))
    first = [layer for layer in layers if layer - 1 not in layers]
    last = [layer for layer in layers if layer + 1 not in layers]
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last)]
    return ",".join([*[EMBEDDINGS] * (EMBEDDINGS in frozen), *spans, *[POOLER] * (POOLER in frozen)])


def bought(config: BertConfig, lever: Lever, *, tokens: int, batch_size: int, memory: int) -> Bought:
    peak = forecast(config, tokens=tokens, batch_size=batch_size, options=lever.options).peak
    return Bought(lever.flag, peak, largest_batch(config, tokens=tokens, memory=memory, options=lever.options))
