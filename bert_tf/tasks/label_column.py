"""Labels as a column of one's own data has them."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

from bert_tf.errors import DataError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, REGRESSION
from bert_tf.tasks import cells, tables
from bert_tf.tasks.sentence.example import Label

_FEW = 10  # classes whose names are numbers, as of ratings
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


@dataclasses.dataclass(frozen=True)
class LabelColumn:
    """What a cell of the column means.

    Attributes:
      column: its name or number.
      kind: of `bert_tf.tasks.sentence.example.KINDS`.
      separator: stands between several labels of a cell; JSON may have a list instead.
      bounds: least and largest of a number, where there are such.
    """

    column: str
    kind: str
    separator: str
    bounds: tuple[float, float] | None = None

    def label(self, cell: object, known: Sequence[str]) -> Label:
        """Returns the label of a cell.

        Args:
          cell: of a table.
          known: labels that there are.

        Raises:
          RowError: it is empty, of another kind, or not among those that are known.
        """
        if self.kind == REGRESSION:
            return cells.number(cell, self.bounds)
        names = tuple(cells.known_label(name, known) for name in self._names(cell))
        return names if self.kind == MULTI_LABEL else names[0]

    def remedy(self, known: Sequence[str]) -> str:
        """Returns what to do about a label that is not among those that are known."""
        if self.kind == CLASSIFICATION and len(known) > _FEW and are_numbers(known):
            return f"numbers are learned with --problem={REGRESSION}"
        return "if it is meant, list all labels with --labels"

    def discover(self, table: tables.Table, *, may_have_header: bool) -> tuple[str, ...]:
        """Returns the labels of a table, sorted, as numbers where all are.

        Rows without a usable label are passed over: whoever reads the examples says what is wrong with them.

        Args:
          table: is read to its end.
          may_have_header: whether its first line could be a header, as nobody said that it is none.

        Raises:
          DataError: the column is missing, there are too few labels to tell apart, or the first line looks like a header.
        """
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
        return sorted_names(counts)

    def _names(self, cell: object) -> tuple[str, ...]:
        """Returns one name, or of several labels any number of names."""
        if self.kind != MULTI_LABEL:
            return (cells.name(cell, self.column),)
        if cell is None:
            return ()
        parts = cell.split(self.separator) if isinstance(cell, str) else cell
        if not isinstance(parts, list):
            raise tables.RowError(f"the value in column {self.column!r} is not a list of labels: {cell!r:.80}")
        stripped = [part.strip() if isinstance(part, str) else part for part in parts]
        return tuple(cells.name(part, self.column) for part in stripped if part not in ("", None))


def are_numbers(names: Iterable[str]) -> bool:
    """Returns whether each name reads as a number."""
    return all(map(_NUMBER.fullmatch, names))


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names in their order, as numbers where all are."""
    if are_numbers(names):
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    return tuple(sorted(names))
