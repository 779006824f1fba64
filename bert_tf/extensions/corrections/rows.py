"""Corrections of training rows: files that leave rows out, or give them other labels; a run's record has their digests."""

from __future__ import annotations

import collections
import csv
import dataclasses
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.errors import DataError, unknown_name
from bert_tf.head_spec import CHOICE, CLASSIFICATION, MULTI_LABEL, REGRESSION, SIMILARITY, SPAN, TAGS
from bert_tf.io import files, spreadsheets
from bert_tf.settings import changed
from bert_tf.tasks import cells, names, tables, text_lines
from bert_tf.tasks.base import TRAIN, Example, Task
from bert_tf.training.part import Part

if TYPE_CHECKING:
    from bert_tf.training.run import Run

_LOG = logging.getLogger(__name__)  # Python's own, below TensorFlow and absl; the commands show it beside theirs

EXCLUDE, RELABEL = "exclude", "relabel"  # values of the column `action`
_ACTIONS = ("", "keep", EXCLUDE, RELABEL)
_ID, _SPLIT, _ACTION, _TEXTS, _LABELS = "id", "split", "action", ("text", "text_b"), ("suggested", "label")
_NUMBERED = re.compile(rf"{TRAIN}(_.+)?-\d+(-\d+)?")  # of all languages of XNLI: train_de-7; of passages: train-7-0
_REMEDY = "write id,label in each line, or name the columns: id,label"


class Corrections(Part):
    def read(self, examples: Sequence[Example], task: Task) -> Sequence[Example]:
        return apply(examples, task, exclude=self.settings.exclude_rows, relabel=self.settings.relabel)

    def recorded(self, run: Run) -> Mapping[str, Any]:
        del run
        return {f"{name}_sha256": files.digest(path) for name, path in changed(self.settings).items()}

    def repeated(self, run: Run) -> Mapping[str, Any]:
        del run
        return {name: str(Path(path).resolve()) for name, path in changed(self.settings).items()}


def read_labels(
    path: str, action: str, texts: Mapping[str, tuple[str, str]] | None = None, *, may_be_empty: bool = False
) -> dict[str, str]:
    """Returns labels (empty to exclude) by row id, from an audit's table as edited, a table with ids, or lines of ids.

    In a table with the columns split and action, only lines with train and `action` count, whose texts must begin those of
    `texts`, by id. An empty label is refused, unless it `may_be_empty`.
    """
    table, named = _table(path)
    id_column, label_columns = (_ID, _LABELS) if named else ("1", ("2",))
    label_column = next(filter(table.has, label_columns), None) if action == RELABEL else None
    if action == RELABEL and label_column is None:
        raise DataError(f"no label; {_REMEDY}", path)
    filters = {name: value for name, value in ((_SPLIT, TRAIN), (_ACTION, action)) if named and table.has(name)}
    is_audit = filters.keys() == {_SPLIT, _ACTION}
    text_columns = [name for name in _TEXTS if is_audit and table.has(name)]
    columns = [id_column, *([label_column] if label_column else []), *text_columns, *filters]
    labels: dict[str, str] = {}

    def add(line: int, row: list[Any]) -> None:
        values = dict(zip(columns, row))
        cells_of_filters = {name: values[name].strip().lower() for name in filters}
        if cells_of_filters.get(_ACTION, "") not in _ACTIONS:
            raise DataError(f"the action {cells_of_filters[_ACTION]!r:.80} is none of {', '.join(_ACTIONS[1:])}", path, line)
        if cells_of_filters != filters:
            return
        if is_audit:
            values = {name: spreadsheets.original(cell) for name, cell in values.items()}
        guid = cells.name(values[id_column], _ID)
        label = values[label_column].strip() if label_column else ""
        if label_column and (label or not may_be_empty):
            label = cells.name(label, label_column)
        # An id of the user's own says which row it is.
        of_row = (texts or {}).get(guid, ()) if _NUMBERED.fullmatch(guid) else ()
        if not all(_plain(text).startswith(_plain(values.get(name, ""))) for name, text in zip(_TEXTS, of_row)):
            why = f"the text of {guid!r} is another one in the training file, which has changed since; audit it again"
            raise DataError(why, path, line)
        if labels.setdefault(guid, label) != label:
            raise DataError(f"label of {guid!r} differs from that above", path, line)

    list(table.read_rows(columns, add))
    return labels


def _table(path: str) -> tuple[tables.Table, bool]:
    """Opens a table of ids, and tells whether its first line, below one with `sep=;`, names the columns."""
    if path == files.PIPE:
        raise DataError("standard input can be read only once; name a file", path)
    lines = text_lines.lines(path)
    first = next(lines)
    if isinstance(first, text_lines.Line) and tables.SEPARATOR_LINE.fullmatch(first.text.strip()):
        first = next(lines, first)
    if isinstance(first, DataError):
        raise first
    form = names.TSV if "\t" in first.text else names.CSV
    try:
        named = _ID in next(csv.reader([first.text.strip().replace("\t", ",").replace(";", ",")]), ())
    except csv.Error as error:
        raise DataError(f"no table of ids ({error}); {_REMEDY}", path, first.number) from error
    table = tables.open_table(path, form=form, header=named)
    if named:
        table.require(_ID, _REMEDY)
    return table, named


def _plain(text: str) -> str:
    return " ".join(text.split())


def _texts(example: Any) -> tuple[str, str]:
    """The first text, and the others as an audit joins them."""
    first, *others = example.texts
    return first, " ".join(filter(None, others))


def apply(examples: Sequence[Any], task: Task, *, exclude: str | None, relabel: str | None) -> Sequence[Any]:
    """Returns the training rows without those of the file `exclude`, with the labels of `relabel`; DataError: unknown ids."""
    counts = collections.Counter(example.guid for example in examples)
    texts = {example.guid: _texts(example) for example in examples}
    excluded = read_labels(exclude, EXCLUDE, texts) if exclude else {}
    labels = read_labels(relabel, RELABEL, texts, may_be_empty=task.family.may_have_no_label) if relabel else {}
    used = {path for path, by_id in ((exclude, excluded), (relabel, labels)) if by_id}  # one file may serve both
    for path, by_id in ((exclude, excluded), (relabel, labels)):
        if path and path not in used:
            _LOG.warning("%s: changes no training row", path)
        unknown = [guid for guid in by_id if guid not in counts]
        if unknown:
            text = f"{len(unknown)} of {len(by_id)} ids are not those of training rows; the first is {unknown[0]!r:.80}"
            raise DataError(f"{text}, a training row is {examples[0].guid!r}", path)
        repeated = next((guid for guid in by_id if counts[guid] > 1), None)
        if repeated is not None:
            text = f"{repeated!r} is the id of {counts[repeated]} training rows; corrections need ids that differ"
            raise DataError(f"{text} (without --id_column rows are numbered)", path)
    remaining = [example for example in examples if example.guid not in excluded]
    if not remaining:
        raise DataError("excludes every training row", exclude)
    known = frozenset(task.family.labels)
    corrected = [
        _relabelled(example, labels, task, known, str(relabel)) if example.guid in labels else example for example in remaining
    ]
    relabelled = sum(example.label != other.label for example, other in zip(remaining, corrected))
    _LOG.info("training rows excluded: %d; relabelled: %d", len(examples) - len(remaining), relabelled)
    return corrected


def _relabelled(example: Any, labels: Mapping[str, str], task: Task, known: Collection[str], path: str) -> Any:
    text = labels[example.guid]
    try:
        if task.family.kind == SPAN:
            from bert_tf.extensions.span.reader import Answer

            answers = (Answer(text, _place(text, example)),) if text else ()
            return dataclasses.replace(example, answers=answers)
        return dataclasses.replace(example, label=_label(text, example, task, known))
    except tables.RowError as error:
        raise DataError(f"{example.guid}: {error}", path) from error


def _place(text: str, example: Any) -> int:
    """Start of an answer: where it overlaps the earlier one, or its only place in the context."""
    places = [match.start() for match in re.finditer(f"(?={re.escape(text)})", example.context)]
    if not places:
        raise tables.RowError(f"the answer {text!r:.80} is not in the context")
    for earlier, start in (example.answers or ())[:1]:
        near = [place for place in places if start >= 0 and place < start + len(earlier) and start < place + len(text)]
        places = [start] if start in near else near[:1] or places
    if len(places) > 1:
        raise tables.RowError(f"the answer {text!r:.80} is in the context several times; exclude the row, or correct its file")
    return places[0]


def _refuse_divided(text: str, tags: Sequence[str]) -> None:
    """Raises RowError for tags with blanks, which the text of a sentence's tags cannot tell from several."""
    for tag in tags:
        parts = tag.split()
        if len(parts) > 1 and f" {' '.join(parts)} " in f" {text} ":
            why = f"the tag {tag!r} holds a blank, and blanks divide the tags of this file"
            raise tables.RowError(f"{why}; rename the tag in the training file")


def _label(text: str, example: Any, task: Task, known: Collection[str]) -> Any:
    family, kind = task.family, task.family.kind
    if kind in (REGRESSION, SIMILARITY):
        highest = getattr(family, "highest_score", None)
        return cells.number(text, getattr(task, "bounds", None) if highest is None else (0.0, highest))
    if kind == CHOICE:
        if not text.isdecimal() or int(text) >= len(example.options):
            raise tables.RowError(f"the option {text!r:.80} is not a number from 0 to {len(example.options) - 1}")
        return int(text)
    if kind == CLASSIFICATION:
        names: tuple[str, ...] = (text,)
    else:
        separator = None if kind == TAGS else getattr(family, "label_separator", ",")
        names = tuple(name.strip() for name in text.split(separator)) if text else ()
    if kind == TAGS:
        _refuse_divided(" ".join(names), family.labels)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise tables.RowError(unknown_name("label", unknown[0], family.labels))
    if kind == TAGS and len(names) != len(example.words):
        raise tables.RowError(f"{len(names)} tags for {len(example.words)} words")
    return names if kind == TAGS else cells.distinct(names) if kind == MULTI_LABEL else text
