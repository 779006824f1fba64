"""Cells of CSV that no spreadsheet takes for a formula, which could run a command or send the file elsewhere.

A text that begins as a formula gets an apostrophe before it, which spreadsheets take for the sign of a text. So does a
text with an apostrophe there already: reading takes one away, and every text comes back as it was.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def safe(cell: object) -> object:
    """Returns a cell; a text that a spreadsheet would compute has an apostrophe before it. Numbers stay.

    >>> [safe(cell) for cell in ("=1+1", "'=1+1", "-0.5", "- no")]
    ["'=1+1", "''=1+1", '-0.5', "'- no"]
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def csv_of(rows: Iterable[Sequence[object]]) -> str:
    """Returns rows as CSV (RFC 4180: quotes hold line breaks)."""
    written = io.StringIO()
    csv.writer(written).writerows([safe(cell) for cell in row] for row in rows)
    return written.getvalue()


def original(cell: str) -> str:
    """Returns the text that `safe` was given."""
    return cell[1:] if _QUOTED.match(cell) else cell
