"""Labels as a column of one's own data has them."""

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

    def require(self, table: tables.Table) -> None:
        """Checks that a table has the column.

        Raises:
          DataError: it has not.
        """
        table.require(self.column, "name that of the label with --label_column")

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


def warn_of_labels(counts: Mapping[str, int], source: object) -> None:
    """Warns of labels that may be typing errors: with few rows, or one letter from another.

    Args:
      counts: how often each label stands in the training data.
      source: of the data, for messages.
    """
    rare = sorted((count, name) for name, count in counts.items() if count < _least_rows(counts))
    if rare:
        named = ", ".join(f"{name!r:.50} ({count})" for count, name in rare[:_NAMED]) + ", ..." * (len(rare) > _NAMED)
        _LOG.warning("%s: labels with few rows: %s; list the labels that are meant with --labels", source, named)
    near = [f"{one!r} ({counts[one]}) and {other!r} ({counts[other]})" for one, other in _near(counts)]
    if near:
        named = ", ".join(near[:_NAMED]) + ", ..." * (len(near) > _NAMED)
        _LOG.warning("%s: labels one letter apart, which may be one: %s", source, named)


def _least_rows(counts: Mapping[str, int]) -> float:
    """Returns how many rows a label has that is not rare; of many labels each has a smaller share."""
    share = min(_RARE_SHARE, 0.5 / len(counts))
    return max(_RARE, share * sum(counts.values()))


def _near(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields pairs of names that differ by a letter, two that changed places, or case; not by a digit, as group1 and group2."""
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
    """Returns whether each name reads as a number."""
    return all(map(_NUMBER.fullmatch, names))


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names in their order, as numbers where all are."""
    if are_numbers(names):
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    return tuple(sorted(names))
