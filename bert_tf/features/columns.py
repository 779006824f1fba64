"""The features of a split, as columns without padding.

Shapes: E examples, N rows, B rows of a batch, T tokens of the longest of these, U units that a batch is made of.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bert_tf.fields import GROUPS, INPUTS, ROW, SLOT, SLOTS, TOKEN, Field
from bert_tf.tokenization.vocabulary import Vocabulary

IntArray = npt.NDArray[np.int32]
Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]

MANY_TRUNCATED = 0.2  # share of rows from which a limit is hardly meant
MANY_UNKNOWN = 0.05  # share of tokens from which a vocabulary does not fit the texts
UNKNOWN = (
    "{:.0f} % of the pieces are [UNK], which the model cannot tell apart: start from a model whose vocabulary fits the texts,"
    " as one of their language (docs/planning.md)"
)

_OF_ROWS = ("lengths", "first_lengths", "example_ids", "slots", "weights")  # columns of [N] that are no targets


class Drawn(NamedTuple):
    """Data of a training step."""

    features: Features  # of at least these units
    units: Numbers  # numbers in `features`


class TrainingRows(Protocol):
    """Source of training rows: `Features`, constant over epochs, or rows made as they are drawn."""

    @property
    def units(self) -> int:
        """Number of units, U."""

    @property
    def examples(self) -> int:
        """Number of examples."""

    @property
    def unit_lengths(self) -> IntArray:
        """[U] tokens of each unit's longest row."""

    @property
    def batch_fields(self) -> tuple[Field, ...]:
        """Contents of a batch."""

    def rows_of(self, units: Numbers) -> Numbers:
        """Row numbers of units, one unit after the other."""

    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        """Data of a step, a pure function of [n] unit numbers and [n] epochs (from 0)."""


@dataclasses.dataclass(frozen=True)
class Features:
    """The features of a split, which can be padded to any length.

    N rows: one for each example, or several if long texts are cut into windows.
    """

    token_ids: IntArray  # [total] all rows, with [CLS] and [SEP]
    lengths: IntArray  # [N] tokens of each row
    first_lengths: IntArray  # [N] tokens of segment 0: [CLS], first text, [SEP]; or all, see `of_first_segment`
    targets: Mapping[str, Array]  # [N, ...], [total, ...] or [all slots, ...], by axis
    fields: tuple[Field, ...]  # of `targets`, in order
    example_ids: IntArray | None = None  # [N] ascending; None if rows are examples
    slots: IntArray | None = None  # [N] slots per row; None if no slots
    weights: IntArray | None = None  # [N] terms in the loss mean; None for 1 each
    truncated: int = 0  # examples that lost tokens
    together: bool = False  # examples stay in one batch: units are examples, not rows

    def __post_init__(self) -> None:
        """Raises ValueError if the columns do not match."""
        if tuple(self.targets) != tuple(field.name for field in self.fields):
            raise ValueError("targets and their fields differ")
        columns = [getattr(self, name) for name in _OF_ROWS]
        sizes = [(len(column), len(self)) for column in columns if column is not None]
        sizes += [(len(self.token_ids), self.size(TOKEN))]
        sizes += [(len(self.targets[field.name]), self.size(field.axis)) for field in self.fields]
        if any(size != expected for size, expected in sizes):
            raise ValueError("columns of different lengths")
        if np.any(self.first_lengths > self.lengths) or np.any(self.first_lengths < 1):
            raise ValueError("a first segment is longer than its row, or empty")

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def examples(self) -> int:
        return len(self.first_rows)

    @property
    def units(self) -> int:
        """Number of units, U: examples if `together`, else rows."""
        return self.examples if self.together else len(self)

    @functools.cached_property
    def unit_lengths(self) -> IntArray:
        return np.maximum.reduceat(self.lengths, self.first_rows) if self.together else self.lengths

    @functools.cached_property
    def unit_rows(self) -> IntArray:
        """[U] rows of each unit."""
        if not self.together:
            return np.ones(len(self), np.int32)
        return np.diff(self.first_rows, append=len(self)).astype(np.int32)

    def rows_of(self, units: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        return ranges(self.first_rows[units], self.unit_rows[units]) if self.together else units.astype(np.int64)

    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        del epochs
        return Drawn(self, units)

    def rows_of_examples(self, examples: Numbers) -> Numbers:
        """Row numbers of examples by their rising numbers [n], one example after the other."""
        return ranges(self.first_rows[examples], np.diff(self.first_rows, append=len(self))[examples])

    @functools.cached_property
    def first_rows(self) -> npt.NDArray[np.int64]:
        """[E] first row of each example."""
        return np.arange(len(self)) if self.example_ids is None else np.flatnonzero(np.diff(self.example_ids, prepend=-1))

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Array], fields: Sequence[Field], *, truncated: int, together: bool = False
    ) -> Features:
        """Inverse of `columns`; KeyError for a missing target, ValueError if columns do not match."""
        arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
        targets = {field.name: arrays.pop(field.name) for field in fields}
        return cls(**arrays, targets=targets, fields=tuple(fields), truncated=truncated, together=together)

    def taken(self, examples: Numbers) -> Features:
        """Returns the features of examples by their rising numbers [n]; `truncated` remains that of all."""
        rows = self.rows_of_examples(examples)
        columns = {name: getattr(self, name)[rows] for name in _OF_ROWS if getattr(self, name) is not None}
        if self.example_ids is not None:
            columns["example_ids"] = np.searchsorted(examples, self.example_ids[rows]).astype(np.int32)
        targets = {field.name: self.targets[field.name][self.places(field.axis, rows)] for field in self.fields}
        return dataclasses.replace(self, token_ids=self.token_ids[self.places(TOKEN, rows)], targets=targets, **columns)

    def followed_by(self, other: Features) -> Features:
        """Returns the features of the examples of both, which have the same columns."""
        ours, others = self.columns(), other.columns()
        if self.example_ids is not None or other.example_ids is not None:
            ours["example_ids"], others["example_ids"] = self._numbers, other._numbers + np.int32(self.examples)
        columns = {name: np.concatenate([ours[name], others[name]]) for name in ours}
        truncated = self.truncated + other.truncated
        return Features.from_columns(columns, self.fields, truncated=truncated, together=self.together or other.together)

    @property
    def _numbers(self) -> IntArray:
        """[N] number of each row's example."""
        return np.arange(len(self), dtype=np.int32) if self.example_ids is None else self.example_ids

    def columns(self) -> dict[str, Array]:
        arrays = {"token_ids": self.token_ids, **{name: getattr(self, name) for name in _OF_ROWS}, **self.targets}
        return {name: value for name, value in arrays.items() if value is not None}

    def size(self, axis: str) -> int:
        return len(self) if axis == ROW else int(self._lengths(axis).sum(dtype=np.int64))

    def places(self, axis: str, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Indices of the rows' values in a column of an axis (ROW, TOKEN or SLOT), row after row."""
        if axis == ROW:
            return rows.astype(np.int64)
        return ranges(self._starts(axis)[rows], self._lengths(axis)[rows])

    def empty(self, field: Field) -> Array:
        return np.empty(self.shape(field), field.dtype)

    def shape(self, field: Field) -> tuple[int, ...]:
        """Shape of the column of a field."""
        places = self.size(field.axis)
        return (places,) if field.width is None else (places, field.width)

    def weight(self, rows: npt.NDArray[np.integer[Any]]) -> int:
        if self.weights is not None:
            return int(self.weights[rows].sum(dtype=np.int64))
        return int(self._begins[rows].sum()) if self.together else len(rows)

    @property
    def weightless(self) -> npt.NDArray[np.int64]:
        """[n] numbers of the examples that add nothing to the loss."""
        if self.weights is None or not len(self):
            return np.zeros(0, np.int64)
        return np.flatnonzero(np.add.reduceat(self.weights, self.first_rows) == 0)

    @property
    def batch_fields(self) -> tuple[Field, ...]:
        added = [*([] if self.slots is None else [SLOTS]), *([GROUPS] if self.together else [])]
        return (*INPUTS, *added, *(field for field in self.fields if field.in_batches))

    def batch(self, rows: npt.NDArray[np.integer[Any]], tokens: int) -> dict[str, Array]:
        """Pads rows [B] (each unit's rows adjacent) to `tokens`, T; ValueError if a row is longer."""
        lengths = self.lengths[rows]
        if lengths.max(initial=0) > tokens:
            raise ValueError(f"a row has {lengths.max()} tokens, the batch is padded to {tokens}")
        position = np.arange(tokens, dtype=np.int32)
        real = position < lengths[:, None]  # [B, T]
        indices = np.where(real, self._starts(TOKEN)[rows][:, None] + position, 0)
        mask = real.astype(np.int32)
        inputs = {
            "input_ids": self.token_ids[indices] * mask,
            "input_mask": mask,
            "segment_ids": (real & (position >= self.first_lengths[rows][:, None])).astype(np.int32),
        }
        if self.slots is not None:
            inputs[SLOTS.name] = self.slots[rows]
        if self.together:
            inputs[GROUPS.name] = np.cumsum(self._begins[rows], dtype=np.int32) - 1
        return {**inputs, **{field.name: self._padded(field, rows, tokens) for field in self.fields if field.in_batches}}

    def _padded(self, field: Field, rows: npt.NDArray[np.integer[Any]], tokens: int) -> Array:
        column = self.targets[field.name]
        if field.axis == ROW:
            of_rows: Array = column[rows]
            return of_rows
        lengths = self._lengths(field.axis)[rows]
        longest = tokens if field.axis == TOKEN else int(lengths.max(initial=0))
        padded = np.full([len(rows), longest, *column.shape[1:]], field.padding, column.dtype)
        padded[np.arange(longest) < lengths[:, None]] = column[self.places(field.axis, rows)]
        return padded

    @functools.cached_property
    def _begins(self) -> npt.NDArray[np.bool_]:
        """[N] whether a row is the first of its example."""
        begins = np.zeros(len(self), np.bool_)
        begins[self.first_rows] = True
        return begins

    def _lengths(self, axis: str) -> IntArray:
        if axis == TOKEN:
            return self.lengths
        if self.slots is None:
            raise ValueError("rows have no slots")
        return self.slots

    @functools.cached_property
    def _first_places(self) -> dict[str, npt.NDArray[np.int64]]:
        axes = (TOKEN,) if self.slots is None else (TOKEN, SLOT)
        return {axis: np.cumsum(self._lengths(axis), dtype=np.int64) - self._lengths(axis) for axis in axes}

    def _starts(self, axis: str) -> npt.NDArray[np.int64]:
        return self._first_places[axis]


def ranges(starts: npt.NDArray[np.int64], lengths: IntArray) -> npt.NDArray[np.int64]:
    """Concatenates start, start + 1, ... for each start [n] and length [n]."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    positions: npt.NDArray[np.int64] = np.repeat(starts - before, lengths) + np.arange(int(lengths.sum(dtype=np.int64)))
    return positions


class Span(NamedTuple):
    """A piece of the text of each row."""

    starts: IntArray  # [N]
    lengths: IntArray  # [N]


class TextPieces(NamedTuple):
    """Word pieces of some texts, concatenated."""

    ids: IntArray
    lengths: IntArray  # [E] pieces of each text
    starts: Numbers  # [E] first piece of each

    def taken(self, texts: Any) -> TextPieces:
        return TextPieces(self.ids, self.lengths[texts], self.starts[texts])


def joined(texts: Iterable[Sequence[int]]) -> TextPieces:
    ids = list(texts)
    lengths = np.fromiter(map(len, ids), np.int32, len(ids))
    flat = np.fromiter(itertools.chain.from_iterable(ids), np.int32, int(lengths.sum(dtype=np.int64)))
    return TextPieces(flat, lengths, starts_of(lengths))


def starts_of(lengths: IntArray) -> Numbers:
    return np.cumsum(lengths, dtype=np.int64) - lengths


def total(spans: Sequence[Span]) -> IntArray:
    return np.asarray(np.sum([span.lengths for span in spans], axis=0, dtype=np.int32))


def marked_rows(lengths: IntArray, vocabulary: Vocabulary) -> tuple[IntArray, Numbers]:
    """Returns the tokens of rows of `lengths` [N], [CLS] first and [SEP] everywhere else, and where rows start [N]."""
    starts = starts_of(lengths)
    token_ids = np.full(int(lengths.sum(dtype=np.int64)), vocabulary.sep_id, np.int32)
    token_ids[starts] = vocabulary.cls_id
    return token_ids, starts


def of_first_segment(first_lengths: IntArray, lengths: IntArray, vocabulary: Vocabulary) -> IntArray:
    """Returns the tokens of segment 0 in rows of `lengths` [N] whose first texts end at `first_lengths` [N]."""
    return first_lengths if vocabulary.second_segment else lengths


def copy(pieces: TextPieces, spans: Sequence[Span], token_ids: IntArray, to: Numbers) -> Numbers:
    """Writes spans of the text of each row one after the other, starting at `to` [N]; returns where they end."""
    for span in spans:
        token_ids[ranges(to, span.lengths)] = pieces.ids[ranges(pieces.starts + span.starts, span.lengths)]
        to = to + span.lengths
    return to
