"""Model outputs as Arrow values: a struct for each task family."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow

from bert_tf.batch.session import Predictor
from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.cluster.gathering import GatheredForm, Gatherer
from bert_tf.tasks.base import TEST
from bert_tf.tasks.predictions import PREDICTIONS, Hint, arrow_fields, fields_of

_SPLIT = "frame"  # name of the rows in messages
PROBLEM = "problem"  # field that says why a row has no prediction

_APART = ("id", "n_best")  # the row has its id; n_best cannot be a column


def _is_column(name: str, hint: Hint) -> bool:
    return name not in _APART and not hint.is_property and hint.schema.get("maxProperties") != 0


@functools.cache
def _fields(kind: str) -> Mapping[str, pyarrow.DataType]:
    """Types of the columns of the objects that `Family.listed` returns, by name."""
    return arrow_fields({name: hint for name, hint in fields_of(kind).items() if _is_column(name, hint)})


Rows = Sequence[Mapping[str, Any]]


def type_of(kind: str) -> pyarrow.DataType:
    if kind not in PREDICTIONS:
        raise FlagError(f"predictions of {kind} are not supported as a column; supported: {', '.join(PREDICTIONS)}")
    return pyarrow.struct({**_fields(kind), PROBLEM: pyarrow.string()})


class Predictions:
    """A model that predicts rows; must be closed. With `skip_bad_rows` unusable ones get a problem instead."""

    def __init__(self, predictor: Predictor, *, skip_bad_rows: bool) -> None:
        self._predictor, self._skip = predictor, skip_bad_rows
        self.close = predictor.close

    def values(self, rows: Rows) -> list[dict[str, Any]]:
        return each(rows, self._structs, skip=self._skip)

    def _structs(self, rows: Rows) -> list[dict[str, Any]]:
        family = self._predictor.family
        examples = family.from_rows(rows, TEST, labelled=False)
        if len(examples) != len(rows):
            raise DataError("a row holds several questions; explode it into rows of one", TEST)
        predictions = family.listed(self._predictor.predictions(examples), examples)
        return [{name: _plain(getattr(prediction, name)) for name in _fields(family.kind)} for prediction in predictions]


class Parts:
    """A loaded model whose predictions are gathered for metrics; must be closed."""

    type = pyarrow.binary()

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer
        self.close = gatherer.close

    def values(self, rows: Rows) -> list[bytes | None]:
        """Returns the input of `gathering.parts_of` as the first row's value, None for the others."""
        examples = self._gatherer.family.from_rows(rows, _SPLIT, labelled=True)
        part = self._gatherer.lines(0, examples, self._gatherer.read(examples), GatheredForm())
        return [part, *[None] * (len(rows) - 1)]


def each(rows: Rows, compute: Callable[[Rows], list[Any]], *, skip: bool) -> list[Any]:
    """A value for each row; with `skip` unusable rows get a dictionary with their problem, else DataError names the first."""
    try:
        return compute(rows) if rows else []
    except DataError as error:
        if len(rows) == 1:
            problem = str(error).split(": ", 2)[-1]  # without its place in the batch
            if not skip:
                raise DataError(f"{problem}; the row is {dict(rows[0])!r:.200}", _SPLIT) from None
            return [{PROBLEM: problem}]
    half = len(rows) // 2
    return [*each(rows[:half], compute, skip=skip), *each(rows[half:], compute, skip=skip)]


def _plain(value: Any) -> Any:
    """Converts a prediction's attribute for Arrow: mappings to pairs, objects to dictionaries."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple):
        return [item if isinstance(item, (str, float)) else dataclasses.asdict(item) for item in value]
    return value
