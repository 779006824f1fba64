"""Reads predictions of training rows: prediction files, or the out-of-fold predictions of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.audit.findings import label_text
from bert_tf.extensions.audit.labels import Cells, Issue, from_predictions
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL, TAGS
from bert_tf.io import files, spreadsheets
from bert_tf.io.log_form import log
from bert_tf.tasks import cells, names, tables
from bert_tf.tasks.base import Family

_OUT_OF_FOLD = "out_of_fold.tsv"  # in the folder of a run with --folds
_ID, _TAGS, _TRUE_LABEL = "id", "tags", "true_label"
_REMEDY = "predict into .jsonl, or name a run with --folds"


def issues(paths: str, family: Family, examples: Sequence[Any]) -> tuple[list[Issue], list[str]]:
    """Returns label issues, by number of the example, of those that every file predicts, and notes on what was judged.

    `paths` is divided by commas.
    """
    names = [path.strip() for path in paths.split(",")]
    if "" in names:
        raise FlagError(f"--predictions={paths}: a name is empty; remove the extra comma")
    runs = [_read(Path(name), family) for name in names]
    numbers = [
        n for n, example in enumerate(examples) if example.label is not None and all(example.guid in run for run in runs)
    ]
    if not numbers:
        raise DataError(f"no prediction of a training row: its ids are {', '.join(list(runs[-1])[:3])}", paths)
    rows = [examples[number] for number in numbers]
    try:
        judged = from_predictions(family, rows, [[run[row.guid] for row in rows] for run in runs])
    except KeyError as error:
        raise DataError(f"no column {error}, which predictions of {family.kind} have", paths) from error
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(f"unusable predictions: {error}", paths) from error
    notes = [note for path, run in zip(names, runs) if (note := _changed(path, family, rows, run))]
    if len(numbers) < len(examples):
        notes.append(f"only {len(numbers):,} of {len(examples):,} labelled rows have predictions; the others are not judged")
    for note in notes:
        log.warning("%s", note)
    return [issue._replace(row=numbers[issue.row]) for issue in judged], notes


def _changed(path: str, family: Family, rows: Sequence[Any], run: Mapping[str, Cells]) -> str:
    """Empty if the rows have the labels that they had when they were predicted, or if that is not known."""
    if family.kind not in (CLASSIFICATION, MULTI_LABEL, TAGS):
        return ""
    pairs = ((label_text(row.label, getattr(family, "label_separator", " ")), run[row.guid].get(_TRUE_LABEL)) for row in rows)
    changed = sum(before not in (None, label) for label, before in pairs)
    if not changed:
        return ""
    advice = "if rows were added or removed since, predict them again (ids are numbers of lines, without --id_column)"
    return f"{path}: {changed:,} of {len(rows):,} rows had another label then; {advice}"


def _read(path: Path, family: Family) -> Mapping[str, Cells]:
    """Lines of a prediction file by id."""
    if path.is_dir():
        path /= _OUT_OF_FOLD
        if not path.is_file():
            raise DataError(f"no {_OUT_OF_FOLD}; train with --folds=5, or name a prediction file", path.parent)
    form = tables.form_of(str(path))
    if form is None:
        raise DataError(files.missing(path) or f"unknown format of this file name; {_REMEDY}", path)
    table = tables.open_table(path, form=form)
    if family.kind == TAGS:  # other formats have a line for each word
        table.require(_TAGS, _REMEDY)
        divided = next((tag for tag in family.labels if len(tag.split()) > 1), None)
        if divided is not None and form in (names.TSV, names.CSV):
            problem = f"the tag {divided!r} holds a blank, and blanks divide the tags of this file"
            raise DataError(f"{problem}; predict into .jsonl, or rename the tag in the training file", path)
    table.require(_ID, "name a prediction file of the package")
    cells_by_id: dict[str, Cells] = {}

    def add(_: int, row: list[Any]) -> None:
        values = [spreadsheets.original(cell) if form == names.CSV else cell for cell in row]
        guid = cells.name(values[0], _ID)
        if guid in cells_by_id:
            raise tables.RowError(f"the id {guid!r:.80} is in a line above; each row has one prediction")
        cells_by_id[guid] = dict(zip(table.names, values[1:]))

    list(table.read_rows([_ID, *table.names], add))
    if not cells_by_id:
        raise DataError("no predictions below the header line", path)
    return cells_by_id
