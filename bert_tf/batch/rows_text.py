"""Rows of an evaluation as text: TSV, and a form for the screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bert_tf.batch.rows import Key, Row, best, groups
from bert_tf.text_table import cell, table

_FIRST = ("checkpoint", "step", "task", "split")
_AFTER_METRICS = ("loss", "examples", "examples_per_second")
_TEXTS = ("best", "checkpoint", "task", "split")
_INTERVAL = " 95 %"  # ends the names of columns of the screen, of which only this is shown
_SHORT = {"best": "", "examples_per_second": "examples/s"}
_BEST = "*"


def as_tsv(rows: Sequence[Row]) -> str:
    """Header and rows; a missing metric is an empty cell."""
    marked, metrics = best(rows), _metrics(rows)
    ends = [end for metric in metrics for end in _ends(metric)]
    names = [*_FIRST, *metrics, *_AFTER_METRICS, *ends, "collapsed", "best", "error"]
    return "".join("\t".join(line) + "\n" for line in _cells(names, [_values(row, marked) for row in rows], _exact))


def for_screen(rows: Sequence[Row]) -> str:
    """Rows by task and split, best first and marked, then untrained models, then errors."""
    blocks = [_block(group, best(group)) for group in groups(rows)]
    warnings = [f"warning: {row.checkpoint}: {row.warning} ({row.task} {row.split})" for row in rows if row.warning]
    errors = [f"error: {row.error} ({row.task} {row.split})" for row in rows if row.error]
    ends = ["".join(f"{cell(line)}\n" for line in lines) for lines in (warnings, errors)]
    return "\n".join(filter(None, [*blocks, *ends]))


def cells_for_screen(rows: Sequence[Row]) -> list[list[list[str]]]:
    """Header and rows by task and split, best first and marked, without error rows."""
    return [_lines(group, best(group))[1] for group in groups(rows)]


def _block(rows: Sequence[Row], marked: Collection[Key]) -> str:
    names, (head, *cells) = _lines(rows, marked)
    texts = [place for place, name in enumerate(names) if name in _TEXTS]
    return "".join(f"{line}\n" for line in table(head, cells, left=texts))


def _lines(rows: Sequence[Row], marked: Collection[Key]) -> tuple[list[str], list[list[str]]]:
    """Column names (intervals beside metrics), and header and rows as cells."""
    metrics = [name for metric in _metrics(rows) for name in (metric, metric + _INTERVAL)]
    names = ["best", *_FIRST, *metrics, *_AFTER_METRICS]
    _, *cells = _cells(names, [_values(row, marked) for row in rows], _short)
    head = [_INTERVAL.strip() if name.endswith(_INTERVAL) else _SHORT.get(name, name) for name in names]
    return names, [head, *cells]


def _metrics(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.metrics))


def _ends(metric: str) -> tuple[str, str]:
    return f"{metric}_95_low", f"{metric}_95_high"


def _values(row: Row, marked: Collection[Key]) -> dict[str, Any]:
    values = {**dataclasses.asdict(row), **row.metrics, "best": _BEST if row.key in marked else None}
    for metric, interval in row.intervals_95.items():
        values.update(zip(_ends(metric), interval))
        values[metric + _INTERVAL] = " to ".join(f"{end:.3f}" for end in interval)
    return values


def _cells(names: Sequence[str], lines: Iterable[Mapping[str, Any]], number: Callable[[str, float], str]) -> list[list[str]]:
    return [list(names), *([_cell(name, line.get(name), number) for name in names] for line in lines)]


def _cell(name: str, value: Any, number: Callable[[str, float], str]) -> str:
    if value is None:
        return ""
    return number(name, value) if isinstance(value, float) else cell(str(value))


def _exact(_: str, number: float) -> str:
    return str(number)


def _short(name: str, number: float) -> str:
    return f"{number:.1f}" if name == "examples_per_second" else f"{number:.4f}"
