"""Files of multiple choice: tables, JSON lines, and RACE folders with one file per passage."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf import documents, files
from bert_tf.errors import DataError
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST
from bert_tf.tasks.choice import questions
from bert_tf.tasks.choice.example import ChoiceExample
from bert_tf.tasks.choice.questions import Form, Question
from bert_tf.tasks.custom import CustomSettings

_EXPECTED = "a passage is one JSON object, a table is called .csv, .tsv or .jsonl"
_DOCUMENTS = (".txt", ".json")  # files of a folder, of passages


def read(settings: CustomSettings, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[ChoiceExample]:
    """Reads a file of questions, or a folder of passages; questions without a label are read too."""
    path = Path(source)
    label = None if split == TEST else settings.label_column
    if isinstance(source, text_lines.Elsewhere):
        return _table(settings, source, split, label, report)
    if path.is_dir():
        named = ((str(one.relative_to(path).with_suffix("")), one) for one in _files(path))
        return itertools.chain.from_iterable(_passage(one, name, label, report) for name, one in named)
    if path.suffix.lower() == ".txt" and settings.file_format is None:
        return _passage(path, path.stem, label, report)
    return _table(settings, source, split, label, report)


def _table(
    settings: CustomSettings, source: text_lines.Source, split: str, label: str | None, report: tables.Report
) -> Iterator[ChoiceExample]:
    table = tables.open_table(source, form=settings.file_format)
    form = questions.form_of(table.has, label)
    if form is None:
        raise DataError(f"no columns of questions: {questions.FORMS}; {table.there}", table.path)
    id_column = settings.id_column
    ids = [id_column] if id_column and (split == TEST or table.has(id_column)) else []

    def examples(line: int, row: list[Any]) -> list[ChoiceExample]:
        name = cells.name(row[-1], ids[0]) if ids else f"{split}-{line}"
        return _examples(name, form, dict(zip(form.columns, row)))

    return itertools.chain.from_iterable(table.read([*form.columns, *ids], examples, report))


def _examples(name: str, form: Form, row: Mapping[str, Any]) -> list[ChoiceExample]:
    """Returns the questions of a row under its name, numbered if it is a passage."""
    found = form.questions(row)
    return named(name, found, numbered="questions" in form.columns)


def named(name: str, found: list[Question], *, numbered: bool) -> list[ChoiceExample]:
    names = [f"{name}-{number}" if numbered else name for number in range(len(found))]
    return [ChoiceExample(guid, *question) for guid, question in zip(names, found)]


def _files(folder: Path) -> list[Path]:
    """Returns the files of all subfolders, sorted by name; raises `DataError` if there are none."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _DOCUMENTS and path.is_file())
    if not found:
        raise DataError(f"no {' or '.join(_DOCUMENTS)} files in the folder or below", folder)
    return found


def _passage(path: Path, name: str, label: str | None, report: tables.Report) -> Iterator[ChoiceExample]:
    try:
        value = documents.json_value(documents.read_text(path))
        if not isinstance(value, dict):
            raise tables.RowError(f"not a JSON object; {_EXPECTED}")
        form = questions.form_of(value.__contains__, label)
        missing = [] if form is None else [column for column in form.columns if column not in value]
        if form is None or missing:
            there = f"the object has {', '.join(map(str, value))}"[:200]
            raise tables.RowError(f"no {', '.join(map(repr, missing)) or 'questions and options'} in the object; {there}")
        found = _examples(os.fspath(name), form, value)
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
    except documents.DocumentError as error:
        report(DataError(f"{error.problem}; {_EXPECTED}", path, error.line))
    except tables.RowError as error:
        report(DataError(str(error), path))
    else:
        yield from found
