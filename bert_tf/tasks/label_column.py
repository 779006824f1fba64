"""The label column of custom data."""

from __future__ import annotations

import collections
import dataclasses
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bert_tf.errors import DataError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks import cells, tables
from bert_tf.tasks.sentence.example import Label

_FEW = 10  # classes whose names are numbers, as of ratings
_RARE, _RARE_SHARE = 5, 0.005  # rows, and share of all, below which a label may be a mistake
_SHORTEST, _LONGEST = 4, 64  # letters of a name of which one may be a mistake
_NAMED = 5  # labels in a warning
_DIGITS = re.compile(r"\d")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")

_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs


@dataclasses.dataclass(frozen=True)
class LabelColumn:
    column: str  # name or number
    kind: str  # one of `bert_tf.tasks.sentence.example.KINDS`
    separator: str  # between labels of a cell; JSON may have a list
    bounds: tuple[float, float] | None = None  # inclusive range of a numeric label

    def label(self, cell: object, known: Sequence[str]) -> Label:
        """Returns the label of a cell; raises `RowError` if it is empty, of another kind or unknown."""
        if self.kind == REGRESSION:
            return cells.number(cell, self.bounds)
        names = tuple(cells.known_label(name, known) for name in self._names(cell))
        return names if self.kind == MULTI_LABEL else names[0]

    def require(self, table: tables.Table) -> None:
        table.require(self.column, "name that of the label with --label_column")

    def remedy(self, known: Sequence[str]) -> str:
        if self.kind == CLASSIFICATION and len(known) > _FEW and are_numbers(known):
            return f"numbers are learned with --problem={REGRESSION}"
        return "if it is meant, list all labels with --labels"

    def discover(self, table: tables.Table, *, may_have_header: bool) -> tuple[str, ...]:
        """Returns the sorted labels of a table (numerically if possible), reading it to its end.

        Rows without a usable label are skipped: reading the examples reports them. `may_have_header` means that the user
        did not rule out a header: raises `DataError` if the first line looks like one.
        """
        self.require(table)
        rows = table.read([self.column], lambda line, row: (line, self._names(row[0])), report=lambda _: None)
        counts: collections.Counter[str] = collections.Counter()
        first: tuple[str, ...] = ()
        for line, names in rows:
            counts.update(names)
            if line == 1:
                first = names
        if may_have_header and first and all(counts[name] == 1 for name in first):
            raise DataError(
                f"the label {self.separator.join(first)!r} stands in the first line only;"
                " if that is a header line, add --has_header, else --nohas_header",
                *(table.path, 1),
            )
        if len(counts) < (2 if self.kind == CLASSIFICATION else 1):
            there = f"every row has the label {next(iter(counts))!r}" if counts else "no row has a label"
            raise DataError(f"{there} in column {self.column!r}; there is nothing to tell apart", table.path)
        warn_of_labels(counts, table.path)
        return sorted_names(counts)

    def _names(self, cell: object) -> tuple[str, ...]:
        """Returns one name, or any number if cells hold several labels."""
        if self.kind != MULTI_LABEL:
            return (cells.name(cell, self.column),)
        if cell is None:
            return ()
        parts = cell.split(self.separator) if isinstance(cell, str) else cell
        if not isinstance(parts, list):
            raise tables.RowError(f"the value in column {self.column!r} is not a list of labels: {cell!r:.80}")
        stripped = [part.strip() if isinstance(part, str) else part for part in parts]
        return tuple(cells.name(part, self.column) for part in stripped if part not in ("", None))


def warn_of_labels(counts: Mapping[str, int], source: object) -> None:
    """Warns of likely typing errors: labels with few rows, or one letter from another."""
    rare = sorted((count, name) for name, count in counts.items() if count < _least_rows(counts))
    if rare:
        named = ", ".join(f"{name!r:.50} ({count})" for count, name in rare[:_NAMED]) + ", ..." * (len(rare) > _NAMED)
        _LOG.warning("%s: labels with few rows: %s; list the labels that are meant with --labels", source, named)
    near = [f"{one!r} ({counts[one]}) and {other!r} ({counts[other]})" for one, other in _near(counts)]
    if near:
        named = ", ".join(near[:_NAMED]) + ", ..." * (len(near) > _NAMED)
        _LOG.warning("%s: labels one letter apart, which may be one: %s", source, named)


def _least_rows(counts: Mapping[str, int]) -> float:
    """Returns the row count below which a label is rare; lower if there are many labels."""
    share = min(_RARE_SHARE, 0.5 / len(counts))
    return max(_RARE, share * sum(counts.values()))


def _near(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields pairs that differ by a letter, a transposition or case, but not by a digit (group1, group2)."""
    seen: dict[str, set[str]] = collections.defaultdict(set)  # by a name without one of its letters
    for name in sorted(names):
        folded = name.casefold()
        cut = range(len(folded)) if _SHORTEST <= len(folded) <= _LONGEST else ()
        keys = {folded, *(folded[:at] + folded[at + 1 :] for at in cut)}
        others = {other for key in keys for other in seen[key] if _DIGITS.sub("", other) != _DIGITS.sub("", name)}
        yield from ((other, name) for other in sorted(others))
        for key in keys:
            seen[key].add(name)


def are_numbers(names: Iterable[str]) -> bool:
    return all(map(_NUMBER.fullmatch, names))


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    if are_numbers(names):
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    return tuple(sorted(names))
