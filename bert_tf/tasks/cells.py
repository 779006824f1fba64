"""Checks and reads the cells of a table: texts and labels, and names that data have by mistake."""

from __future__ import annotations

import itertools
import math
import numbers
import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from bert_tf.tasks.tables import RowError

_LARGEST_NUMBER = float(np.finfo(np.float32).max)  # labels are learned as float32
_LABELS_NAMED = 10  # known labels listed in a message
# What pandas, R, Excel, JSON and Python write for a missing value.
_MISSING = frozenset("nan NaN NAN -nan None NA N/A n/a #N/A #NA <NA> NaT null NULL Null".split())
_LIST = re.compile(r"""\[\s*(['"].*['"]|-?\d[-\d.,\s]*)?\s*\]|[({]\s*['"].*['"]\s*,?\s*[)}]""", re.DOTALL)
_BITS = (frozenset(("0", "1")), frozenset(("0.0", "1.0")), frozenset(("False", "True")))
_WITH_COMMAS = re.compile(r"\s*[+-]?\d*(,\d+)+(\.\d+)?\s*")
_AS_NAMES = "write the names of the labels that apply"


class UnknownLabelError(RowError):
    """A label is not in the known set."""

    def __init__(self, message: str, label: str = "") -> None:
        """Without a label while it is unpickled, as from another process."""
        super().__init__(message)
        self.label = label


def text(cell: object, column: str, *, may_be_empty: bool = False) -> str:
    """Returns a text unchanged; raises `RowError` if it is empty but required, not a string, or not valid Unicode."""
    if not isinstance(cell, str):
        raise RowError(f"the value in column {column!r} is not a string: {cell!r:.80}")
    if not cell.strip() and not may_be_empty:
        raise RowError(f"the text in column {column!r} is empty")
    return _whole(cell, column)


def joined(row: Sequence[object], columns: Sequence[str]) -> str:
    """Joins the texts of several columns with spaces; empty ones and JSON nulls are skipped, unless all are."""
    if len(columns) == 1:
        return text(row[0], columns[0])
    parts = [text("" if cell is None else cell, column, may_be_empty=True) for cell, column in zip(row, columns)]
    joined_text = " ".join(part for part in parts if part.strip())
    if not joined_text:
        raise RowError(f"the texts in columns {', '.join(map(repr, columns))} are empty")
    return joined_text


def name(cell: object, column: str) -> str:
    """Returns a label or an id, stripped; JSON may have a finite number or a boolean, True as in memory. Raises `RowError`."""
    # Some programs write missing values as NaN.
    is_number = isinstance(cell, numbers.Integral) or (isinstance(cell, numbers.Real) and math.isfinite(cell))
    if not (isinstance(cell, str) or is_number):
        raise RowError(f"the value in column {column!r} is not a name: {cell!r:.80}")
    stripped = str(cell).strip()
    if not stripped:
        raise RowError(f"the value in column {column!r} is empty")
    if "\0" in stripped:
        raise RowError(f"the value in column {column!r} holds a NUL character: {stripped!r:.80}")
    return _whole(stripped, column)


def _whole(value: str, column: str) -> str:
    """Rejects unpaired surrogates, which JSON can express and UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = ascii(value[error.start])
        raise RowError(f"unpaired surrogate {half} in column {column!r}: write both halves of the pair, or neither") from error
    return value


def known_label(label: str, known: Collection[str]) -> str:
    """Returns the label; raises `UnknownLabelError`. Many labels are looked up faster in the keys of a dict."""
    if label not in known:
        more = f" and {len(known) - _LABELS_NAMED} more" if len(known) > _LABELS_NAMED else ""
        raise UnknownLabelError(
            f"unknown label {label!r:.80}; known are {', '.join(itertools.islice(known, _LABELS_NAMED))}{more}", label
        )
    return label


def number(cell: object, bounds: tuple[float, float] | None = None) -> float:
    """Returns a finite numeric label within `bounds` (inclusive); raises `RowError` otherwise."""
    no_number = isinstance(cell, (bool, np.bool_)) or (isinstance(cell, str) and "_" in cell)  # Python reads 1_0 as 10
    try:
        value = math.nan if no_number else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        remedy = "; the decimal sign must be a point, and thousands have no comma" if _WITH_COMMAS.fullmatch(str(cell)) else ""
        raise RowError(f"the label {cell!r:.80} is not a number{remedy}")
    if abs(value) > _LARGEST_NUMBER:
        raise RowError(f"the label {cell!r:.80} is too large")
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise RowError(f"the label {value:g} is outside {bounds[0]:g} to {bounds[1]:g}")
    return value


def is_missing(cell: object) -> bool:
    """Whether a cell is what programs write for a missing value."""
    return isinstance(cell, str) and cell.strip() in _MISSING


def doubt(name: str) -> str:
    """Returns why a name is hardly one that was meant; empty if it may be."""
    if name in _MISSING:
        return f"the label {name!r} stands for a missing value: fill it in, or leave the row out"
    if _LIST.fullmatch(name):
        return f"the label {name!r:.80} is a list written as text"
    return ""


def is_list(cell: str) -> bool:
    """Whether a cell of several labels is a list of Python or JSON."""
    cell = cell.strip()
    return bool(_LIST.fullmatch(cell)) or (cell.startswith("[") and cell.endswith("]"))


def refuse_doubtful(names: Iterable[str], remedy: str) -> None:
    """Raises `RowError` for a name that was hardly meant; `remedy` says how to list the labels."""
    for name in names:
        if doubt(name):
            raise RowError(f"{doubt(name)}; if it is a class, {remedy}")


def distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the labels of a row; raises `RowError` for a repeated one."""
    if len(set(names)) == len(names):
        return names
    if _are_bits(names):
        raise RowError(f"the labels {', '.join(names)[:80]} are 0 and 1 for each label; {_AS_NAMES}")
    repeated = next(name for index, name in enumerate(names) if name in names[:index])
    raise RowError(f"the label {repeated!r:.80} is repeated in the row")


def problem_of_bits(rows: Sequence[tuple[str, ...]]) -> str:
    """Returns what is wrong if every row has one 0 or 1 for each label; empty if rows hold names."""
    (length, *others) = {len(names) for names in rows} or {0}
    if others or length < 2 or not _are_bits([name for names in rows for name in names]):
        return ""
    return f"every row has {length} values of 0 or 1, one for each label; {_AS_NAMES}"


def _are_bits(names: Iterable[str]) -> bool:
    distinct_names = set(names)
    return any(distinct_names <= bits for bits in _BITS)
