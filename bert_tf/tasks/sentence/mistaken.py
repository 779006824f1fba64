"""Names that data have by mistake: words for a missing value, lists written as text, 0 and 1 in place of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bert_tf.tasks.tables import RowError

# What pandas, R, Excel, JSON and Python write for a missing value.
_MISSING = frozenset("nan NaN NAN -nan None NA N/A n/a #N/A #NA <NA> NaT null NULL Null".split())
_LIST = re.compile(r"""\[\s*(['"].*['"]|-?\d[-\d.,\s]*)?\s*\]|[({]\s*['"].*['"]\s*,?\s*[)}]""", re.DOTALL)
_BITS = (frozenset(("0", "1")), frozenset(("0.0", "1.0")), frozenset(("False", "True")))
_AS_NAMES = "write the names of the labels that apply"


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


def multi_hot(rows: Sequence[tuple[str, ...]]) -> str:
    """Returns what is wrong if every row has one 0 or 1 for each label; empty if rows hold names."""
    (length, *others) = {len(names) for names in rows} or {0}
    if others or length < 2 or not _are_bits([name for names in rows for name in names]):
        return ""
    return f"every row has {length} values of 0 or 1, one for each label; {_AS_NAMES}"


def _are_bits(names: Iterable[str]) -> bool:
    distinct_names = set(names)
    return any(distinct_names <= bits for bits in _BITS)
