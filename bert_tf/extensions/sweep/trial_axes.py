"""Axes of parallel coordinates: places of values from 0 to 1, and ticks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.extensions.report.run_files import is_number
from bert_tf.extensions.sweep.trials import text

_FEW = 6  # distinct values: each has a tick
_MOST_TICKS = 6
_LOG_FROM = 10.0  # ratio of the ends of a logarithmic axis
_LONGEST_LINE = 14  # characters of a title
_LONGEST_NAME = 60
_SMALL = 1e-3  # numbers below it have an exponent
_EXPONENT = re.compile(r"\.?0*e([+-])0+(?=\d)")  # with the zeros before it


class Axis(NamedTuple):
    title: list[str]  # lines
    places: list[float]  # one for each run
    ticks: list[tuple[float, str]]


def axis(name: str, values: Sequence[Any], *, few: int = _FEW) -> Axis:
    """Up to `few` distinct values, and all that are not numbers, stand at equal distances."""
    numeric = all(map(is_number, values))
    if not numeric or len(set(values)) <= few:
        return _of_choices(name, values, numeric=numeric)
    low, high = float(min(values)), float(max(values))
    is_log = low > 0 and high / low >= _LOG_FROM and _is_more_even_by_log(values, low, high)
    ticks = log_ticks(low, high) if is_log else linear_ticks(low, high)
    places, at_ticks = (_places(numbers, low, high, is_log=is_log) for numbers in (values, ticks))
    return Axis(wrapped(name), places, [(position, label(tick)) for position, tick in zip(at_ticks, ticks)])


def _of_choices(name: str, values: Sequence[Any], *, numeric: bool) -> Axis:
    distinct = sorted(set(values)) if numeric else sorted({text(value) for value in values})
    position = {value: number / max(len(distinct) - 1, 1) for number, value in enumerate(distinct)}
    every = -(-len(distinct) // (2 * _MOST_TICKS))
    ticks = [(position[value], label(value) if numeric else value) for value in distinct[::every]]
    return Axis(wrapped(name), [position[value if numeric else text(value)] for value in values], ticks)


def _places(values: Sequence[float], low: float, high: float, *, is_log: bool) -> list[float]:
    scaled, ends = np.asarray(values, np.float64), np.array([low, high])
    scaled, ends = (np.log(scaled), np.log(ends)) if is_log else (scaled, ends)
    return [round(float(position), 4) for position in (scaled - ends[0]) / (ends[1] - ends[0])]


def _is_more_even_by_log(values: Sequence[float], low: float, high: float) -> bool:
    """The results do not say how a range was drawn; on its own scale the median is near the middle."""
    by_log, linear = (abs(float(np.median(_places(values, low, high, is_log=is_log))) - 0.5) for is_log in (True, False))
    return by_log < linear


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten; only powers if these are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine, coarse = ([float(f"{m}e{power}") for power in powers for m in multiples] for multiples in ((1, 2, 5), (1,)))
    fine, coarse = ([tick for tick in ticks if low <= tick <= high] for ticks in (fine, coarse))
    return fine if len(fine) <= _MOST_TICKS else coarse[:: -(-len(coarse) // _MOST_TICKS)]


def linear_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    least = (high - low) / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def label(value: float) -> str:
    digits = f"{value:.2e}" if 0 < abs(value) < _SMALL else f"{value:.3g}"
    return _EXPONENT.sub(r"e\1", digits).replace("e+", "e")


def wrapped(name: str) -> list[str]:
    """Breaks a name after underscores and spaces into short lines."""
    lines = [""]
    for part in re.findall(r"[^_ ]*[_ ]?", name[:_LONGEST_NAME]):
        lines = [*lines[:-1], lines[-1] + part] if len(lines[-1] + part) <= _LONGEST_LINE else [*lines, part]
    return [line for line in lines if line] or [name[:_LONGEST_LINE]]
