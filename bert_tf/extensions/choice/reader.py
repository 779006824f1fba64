"""Example of multiple choice: a question and its options."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import numbers
import os
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from bert_tf.errors import DataError
from bert_tf.io import documents, files
from bert_tf.tasks import cells, tables, text_lines
from bert_tf.tasks.base import TEST
from bert_tf.tasks.sentence.rows import each, id_of
from bert_tf.tasks.settings import TaskSettings
from bert_tf.tasks.tables import RowError

_BLANK = re.compile("_+")
_WHOLE = re.compile(r"\s*[0-9]+(\.0+)?\s*")  # as pandas writes a column of numbers that lacks one


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    guid: str
    context: str  # text before the question: a passage, a sentence
    question: str  # may have a blank, `_`, for the options; else they follow it; may be empty, like the context
    options: tuple[str, ...]
    label: int | None = None  # number of the right option, from 0; None if it is to be predicted

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.context, self.question, *self.options)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Two texts per option: the context, and the question with the option inserted."""
        before, after = self.around
        return [(self.context, " ".join(filter(None, (before, option, after)))) for option in self.options]

    @property
    def around(self) -> tuple[str, str]:
        """Text before and after the option: the parts of a question with one blank, otherwise the whole question and ""."""
        parts = _BLANK.split(self.question)
        return (parts[0].strip(), parts[1].strip()) if len(parts) == 2 else (self.question, "")


LABEL = "label"
FORMS = (
    "sent1, sent2, ending0, ending1 ... and label; or context (or passage), question, options and label (or answer);"
    " or article, questions, options and answers"
)

_CONTEXTS = ("context", "passage", "article")
_LABELS = ("answer", "label")  # if the setting's column is missing


Question = tuple[str, str, tuple[str, ...], Optional[int]]  # the fields of a `ChoiceExample` except its name
# A row format: its columns, and a function from a row by column to questions, which may raise `RowError`.
Form = tuple[tuple[str, ...], Callable[[Mapping[str, Any]], list[Question]]]


def form_of(has: Callable[[str], bool], label_column: str | None) -> Form | None:
    """Returns the row format; None if the columns match none. `label_column` is None if labels are to be predicted."""
    if has("ending0"):
        endings = tuple(itertools.takewhile(has, (f"ending{number}" for number in itertools.count())))
        texts = tuple(filter(has, ("sent1", "sent2")))
        labels = () if label_column is None else (label_column,)
        return ((*texts, *endings, *labels), lambda row: [_of_endings(row, texts, endings, labels)]) if texts else None
    if has("questions") and has("options"):
        texts = (*tuple(filter(has, _CONTEXTS))[:1], "questions")
        labels = () if label_column is None else ("answers",)
        return (*texts, "options", *labels), lambda row: _of_passage(row, texts[:-1], labels)
    if has("options") and (has("question") or any(map(has, _CONTEXTS))):
        texts = tuple(filter(has, (*tuple(filter(has, _CONTEXTS))[:1], "question")))
        others = _LABELS if label_column == LABEL else ()  # another name is the user's own
        known = () if label_column is None else tuple(filter(has, (label_column, *others)))[:1] or (label_column,)
        return (*texts, "options", *known), lambda row: [_of_object(row, texts, known)]
    return None


def _of_endings(row: Mapping[str, Any], texts: Sequence[str], endings: Sequence[str], labels: Sequence[str]) -> Question:
    """SWAG's columns; trailing endings may be empty if other rows have more."""
    values = ["" if row[name] is None else row[name] for name in endings]
    while values and isinstance(values[-1], str) and not values[-1].strip():
        values.pop()
    options = tuple(cells.text(cell, name) for cell, name in zip(values, endings))
    known = [int(float(row[name])) if _WHOLE.fullmatch(str(row[name])) else row[name] for name in labels]
    return _question([row[name] for name in texts], texts, options, [*zip(known, labels)])


def _of_object(row: Mapping[str, Any], texts: Sequence[str], labels: Sequence[str]) -> Question:
    options = _options(row["options"])
    return _question([row[name] for name in texts], texts, options, [(row[name], name) for name in labels])


def _of_passage(row: Mapping[str, Any], contexts: Sequence[str], labels: Sequence[str]) -> list[Question]:
    """RACE's layout: parallel lists of questions, options and answers."""
    asked, options = _list(row["questions"], "questions"), _list(row["options"], "options")
    answers = [_list(row[name], name) for name in labels]
    for name, values in (("options", options), *zip(labels, answers)):
        if len(values) != len(asked):
            raise RowError(f"{len(asked)} questions and {len(values)} {name}")
    rows = zip(asked, options, *answers)
    named = (*contexts, "questions")
    questions = []
    for number, (question, choices, *answer) in enumerate(rows):
        try:
            texts = [*(row[name] for name in contexts), question]
            questions.append(_question(texts, named, _options(choices), [*zip(answer, labels)]))
        except RowError as error:
            raise RowError(f"question {number}: {error}") from error
    return questions


def _question(
    texts: Sequence[object], names: Sequence[str], options: tuple[str, ...], labels: Sequence[tuple[object, str]]
) -> Question:
    if len(options) < 2:
        raise RowError(f"{len(options) or 'no'} option{'' if len(options) == 1 else 's'}; give at least two")
    strings = [cells.text("" if text is None else text, name, may_be_empty=True) for text, name in zip(texts, names)]
    if not any(text.strip() for text in strings):
        raise RowError(f"the text in column {names[-1]!r} is empty")
    label = right_option(labels[0][0], options, labels[0][1]) if labels else None
    # Without a context, the question is read first.
    context, question = strings if len(strings) > 1 and strings[0].strip() else (strings[-1], "")
    return context, question, options, label


def right_option(value: object, options: Sequence[str], column: str = LABEL) -> int:
    """Returns the index from 0 of an index (also as text), letter or option text; raises `RowError` if ambiguous."""
    meant = set(_meant(value, options))
    if len(meant) == 1:
        return meant.pop()
    last = string.ascii_uppercase[min(len(options), 26) - 1]
    known = f"a number from 0 to {len(options) - 1}, a letter from A to {last}, or the text of an option"
    if not meant:
        raise RowError(f"the value in column {column!r} is {value!r:.80}, not {known}")
    candidates = " and ".join(f"option {number}" for number in sorted(meant))
    raise RowError(
        f"the value in column {column!r}, {value!r:.80}, may be {candidates}; give a number (in JSON without quotes)"
    )


def _meant(value: object, options: Sequence[str]) -> list[int]:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):  # NumPy's too, and 1.0, as pandas writes it
        return [index for index in range(len(options)) if index == value]
    if not isinstance(value, str):
        return []
    folded = value.strip()
    number = [int(folded)] if folded.isdecimal() and folded.isascii() else []
    letter = [string.ascii_uppercase.index(folded.upper())] if len(folded) == 1 and folded in string.ascii_letters else []
    itself = [index for index, option in enumerate(options) if option.strip() == folded]
    return [index for index in (*number, *letter, *itself) if index < len(options)]


def _list(value: object, column: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise RowError(f"the value in column {column!r} is not a list: {value!r:.80}")
    return list(value)


def _options(value: object) -> tuple[str, ...]:
    return tuple(cells.text(option, "options") for option in _list(value, "options"))


_EXPECTED = "a passage is one JSON object, a table is called .csv, .tsv or .jsonl"
_DOCUMENTS = (".txt", ".json")  # files of a folder, of passages


def read_choices(
    settings: TaskSettings, source: text_lines.Source, split: str, report: tables.Report
) -> Iterator[ChoiceExample]:
    """Reads a file of questions, or a folder of passages; questions without a label are read too."""
    path = Path(source)
    label = None if split == TEST else settings.custom.label_column
    if isinstance(source, text_lines.Elsewhere):
        return _table(settings, source, split, label, report)
    if path.is_dir():
        paths = sorted(file for file in path.rglob("*") if file.suffix.lower() in _DOCUMENTS and file.is_file())
        if not paths:
            raise DataError(f"no {' or '.join(_DOCUMENTS)} files in the folder or below", path)
        named = ((str(file.relative_to(path).with_suffix("")), file) for file in paths)
        return itertools.chain.from_iterable(_passage(file, name, label, report) for name, file in named)
    if path.suffix.lower() == ".txt" and settings.custom.file_format is None:
        return _passage(path, path.stem, label, report)
    return _table(settings, source, split, label, report)


def _table(
    settings: TaskSettings, source: text_lines.Source, split: str, label: str | None, report: tables.Report
) -> Iterator[ChoiceExample]:
    table = tables.open_table(source, form=settings.custom.file_format)
    form = form_of(table.has, label)
    if form is None:
        raise DataError(f"no columns of questions: {FORMS}; {table.there}", table.path)
    ids = table.ids(settings.custom.id_column, needed=split == TEST and settings.needs_ids)

    def examples(line: int, row: list[Any]) -> list[ChoiceExample]:
        name = cells.name(row[-1], ids[0]) if ids else f"{split}-{line}"
        return _examples(name, form, dict(zip(form[0], row)))

    return itertools.chain.from_iterable(table.read_rows([*form[0], *ids], examples, report))


def _examples(name: str, form: Form, row: Mapping[str, Any]) -> list[ChoiceExample]:
    """Returns the questions of a row under its name, numbered if it is a passage."""
    columns, questions = form
    is_passage = "questions" in columns
    return [ChoiceExample(f"{name}-{n}" if is_passage else name, *question) for n, question in enumerate(questions(row))]


def _passage(path: Path, name: str, label: str | None, report: tables.Report) -> Iterator[ChoiceExample]:
    try:
        value = documents.json_value(documents.read_text(path))
        if not isinstance(value, dict):
            raise tables.RowError(f"not a JSON object; {_EXPECTED}")
        form, missing = _form_of_row(value, label)
        if form is None or missing:
            present = f"the object has {', '.join(map(str, value))}"[:200]
            raise tables.RowError(f"no {', '.join(map(repr, missing)) or 'questions and options'} in the object; {present}")
        examples = _examples(os.fspath(name), form, value)
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
    except documents.DocumentError as error:
        report(DataError(f"{error.problem}; {_EXPECTED}", path, error.line))
    except tables.RowError as error:
        report(DataError(str(error), path))
    else:
        yield from examples


_ORDER = ("context", "question", "options")  # of sequences


def read_rows(rows: Iterable[Any], split: str, *, labelled: bool) -> list[ChoiceExample]:
    """Reads mappings with the keys of files, or sequences (context, question, options, label), once."""
    return [example for examples in each(rows, split, functools.partial(_of_row, labelled=labelled)) for example in examples]


def _of_row(row: Any, name: str, *, labelled: bool) -> list[ChoiceExample]:
    values = _mapping(row, labelled=labelled)
    form, missing = _form_of_row(values, LABEL if labelled else None)
    if form is None or missing:
        columns = ", ".join(map(str, values))
        lacks = f"no {', '.join(map(repr, missing))}" if missing else "no question"
        raise RowError(f"{lacks}; the row has {columns:.200}; give {FORMS}")
    return _examples(id_of(row, name), form, values)


def _mapping(row: Any, *, labelled: bool) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    names = (*_ORDER, LABEL) if labelled else _ORDER
    if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(names):
        raise RowError(f"is {row!r:.80}; give ({', '.join(names)}) or a mapping: {FORMS}")
    return dict(zip(names, row))


def _form_of_row(row: Mapping[str, Any], label_column: str | None) -> tuple[Form | None, list[str]]:
    """Returns the format of a row, None if it has none, and the columns that it lacks."""
    form = form_of(row.__contains__, label_column)
    return form, [] if form is None else [column for column in form[0] if column not in row]


def row_of(example: ChoiceExample) -> dict[str, Any]:
    """The row of an example, as `Model.predict` takes it."""
    return {"context": example.context, "question": example.question, "options": list(example.options)}
