"""Forecasts which batches and micro-batches fit into a device's memory."""

from __future__ import annotations

from collections.abc import Callable

from bert_tf.profiling.forecast.compute_options import Step
from bert_tf.profiling.forecast.step_peak import forecast

MEBIBYTE = 1 << 20

_LARGEST_BATCH = 1 << 16


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


def most_parts(step: Step) -> int:
    """Returns in how many micro-batches a batch can be split: each part of a replica has the examples that the loss needs."""
    return step.batch_size // (step.options.replicas * step.options.fewest_examples)


def in_fewest_parts(step: Step, memory: int) -> Step | None:
    """Returns the step in the fewest micro-batches that fit, at least as many as now; None if nothing fits."""

    def fit(count: int) -> bool:
        return fits(step.having(micro_batches=count), memory)

    least, most = step.options.micro_batches, most_parts(step)
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
