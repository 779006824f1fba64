"""Reads predictions of training rows: a prediction file, or the out-of-fold predictions of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.audit.labels import Issue, from_predictions
from bert_tf.errors import DataError
from bert_tf.tasks import cells, tables
from bert_tf.tasks.base import Family

_OUT_OF_FOLD = "out_of_fold.tsv"  # in the folder of a run with --folds
_ID = "id"


def issues(path: str, family: Family, examples: Sequence[Any]) -> list[Issue]:
    """Returns label issues of the examples that the file predicts, by their number."""
    file = Path(path)
    if file.is_dir():
        file /= _OUT_OF_FOLD
        if not file.is_file():
            raise DataError(f"no {_OUT_OF_FOLD}; train with --folds=5, or name a prediction file", path)
    table = tables.open_table(file)
    table.require(_ID, "name a prediction file of the package")
    found = dict(table.read([_ID, *table.names], lambda _, row: (cells.name(row[0], _ID), dict(zip(table.names, row[1:])))))
    numbers = [number for number, example in enumerate(examples) if example.guid in found and example.label is not None]
    if not numbers:
        raise DataError(f"no prediction of a training row: its ids are {', '.join(list(found)[:3])}", file)
    rows = [examples[number] for number in numbers]
    try:
        judged = from_predictions(family, rows, [found[row.guid] for row in rows])
    except KeyError as error:
        raise DataError(f"no column {error}, which predictions of {family.kind} have", file) from error
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(f"unusable predictions: {error}", file) from error
    return [issue._replace(row=numbers[issue.row]) for issue in judged]
