"""Forecasts which batches and micro-batches fit into a device's memory, and the saving of each lever."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from bert_tf.config import BertConfig
from bert_tf.profiling.forecast.activations import FLOAT
from bert_tf.profiling.forecast.compute_options import BYTES, EMBEDDINGS, POOLER, Part, Step
from bert_tf.profiling.forecast.step_peak import forecast

LENGTHS = (64, 128, 256, 320, 384, 512)
MEBIBYTE = 1 << 20

HOSTED = "--place=embeddings:/CPU:0"

_LARGEST_BATCH = 1 << 16
# Assumed cost of each part of a batch after the first: gradients are summed, and small batches use a device less well.
# A GPU that small parts leave idle loses more.
_PER_PART = 0.01


class Bought(NamedTuple):
    """Effect of a lever on a step."""

    flag: str
    peak: int  # bytes
    largest_batch: int


def fits(step: Step, memory: int) -> bool:
    return forecast(*step).needed <= memory


def largest_batch(step: Step, memory: int) -> int:
    """Returns the most examples that fit into `memory` bytes, whatever the step's batch size; 0 if not even one does."""
    low, high = 0, 1
    while high <= _LARGEST_BATCH and fits(step._replace(batch_size=high), memory):
        low, high = high, 2 * high
    high = min(high, _LARGEST_BATCH + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(step._replace(batch_size=middle), memory) else (low, middle)
    return low


def in_fewest_parts(step: Step, memory: int) -> Step | None:
    """Returns the step in the fewest micro-batches that fit, at least as many as now; None if nothing fits."""

    def fit(count: int) -> bool:
        return fits(step.having(micro_batches=count), memory)

    least, most = step.options.micro_batches, step.batch_size // step.options.replicas  # each part of a replica has an example
    if least > max(1, most):
        return None
    # One part needs no sums of gradients; from two on, more parts never need more.
    count = least if fit(least) else first(least + 1, most, fit)
    return None if count is None else step.having(micro_batches=count)


def first(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """Returns the least number in [low, high] for which a monotone condition holds; None if there is none."""
    if low > high or not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def levers(step: Step) -> dict[str, Step]:
    """Returns ways to reduce memory: flags of the training command, and the step with each."""
    options = step.options
    half_frozen = options.frozen | {EMBEDDINGS, *range(step.config.num_hidden_layers // 2)}
    changes: dict[str, dict[str, Any]] = {
        f"--gradient_accumulation_steps={2 * options.micro_batches}": {"micro_batches": 2 * options.micro_batches},
        f"--gradient_accumulation_steps={4 * options.micro_batches}": {"micro_batches": 4 * options.micro_batches},
        "--recompute": {"recompute": True},
        "--precision=bfloat16": {"precision": "bfloat16" if BYTES[options.precision] == FLOAT else options.precision},
        f"--freeze={written(half_frozen)}": {"frozen": half_frozen},
        HOSTED: {"host_embeddings": True},
        "--pack_tokens": {"pack_tokens": True},
        "--custom_gradients": {"custom_gradients": True},
        "--last_layer_cls_only": {"last_layer_cls_only": True},
        "--fused_adam": {"fused_adam": True},
    }
    changed = {flag: step.having(**change) for flag, change in changes.items()}
    return {flag: other for flag, other in changed.items() if other != step}


def written(frozen: Collection[Part]) -> str:
    """Formats parts for --freeze: embeddings,0-5,pooler."""
    layers = sorted(part for part in frozen if isinstance(part, int))
    first = [layer for layer in layers if layer - 1 not in layers]
    last = [layer for layer in layers if layer + 1 not in layers]
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last)]
    return ",".join([*[EMBEDDINGS] * (EMBEDDINGS in frozen), *spans, *[POOLER] * (POOLER in frozen)])


def bought(step: Step, memory: int) -> list[Bought]:
    """Returns the effect of each lever."""
    return [Bought(flag, forecast(*other).peak, largest_batch(other, memory)) for flag, other in levers(step).items()]


def slowdown(asked: Step, other: Step) -> float:
    """Time per example of `other` relative to `asked`; half precision counts as no faster (device-dependent)."""
    return _multiplications(other) / _multiplications(asked)


def _multiplications(step: Step) -> float:
    """Returns the encoder's multiplications per example: one pass for the output, one more for each gradient."""
    frozen, last = step.options.frozen, step.config.num_hidden_layers - 1
    trained = [number for number in range(last + 1) if number not in frozen]
    lowest = 0 if EMBEDDINGS not in frozen else min(trained, default=last + 1)  # down to where gradients are needed
    passes = 0
    for number in range(last + 1):
        again = step.options.recompute and lowest <= number < last
        passes += 1 + (number >= lowest) + (number not in frozen) + again
    return passes * _of_layer(step.config, step.tokens) * (1.0 + _PER_PART * (step.options.micro_batches - 1))


def _of_layer(config: BertConfig, tokens: int) -> int:
    dense = 4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size
    return tokens * (dense + 2 * tokens * config.hidden_size)
