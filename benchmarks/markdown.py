"""Cells and tables of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def spread(values: Mapping[str, Any], form: str = "") -> str:
    """Formats median, lowest and highest (keys of `values`), by default with four digits; empty without values."""
    if "median" not in values:
        return ""
    numbers = (values[key] for key in ("median", "lowest", "highest"))
    middle, low, high = ((form or ("{:.4g}" if abs(number) < 1e4 else "{:.0f}")).format(number) for number in numbers)
    return middle if low == high else f"{middle} ({low} to {high})"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
