"""Reads files to predict as chunks of examples, in a task's layout or custom tables."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.batch.ahead import gathered
from bert_tf.batch.job import Columns, Rules
from bert_tf.batch.trained import Trained
from bert_tf.errors import BadRowsError, CheckpointError, DataError, FlagError
from bert_tf.head_spec import MULTI_LABEL, PRETRAINING
from bert_tf.io import documents, files, spreadsheets
from bert_tf.tasks import families, names, registry, tables, text_lines
from bert_tf.tasks.base import DEV, TEST, Family, Layout, Task
from bert_tf.tasks.families import with_rules
from bert_tf.tasks.predictions import delimited
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tasks.sentence.family import usual_separator
from bert_tf.tasks.settings import CUSTOM, SKIP, lasting_names, of_values
from bert_tf.tasks.text_lines import Kept

# Examples computed together. The grouping affects the last digits of results, so it is the same for every way to predict.
CHUNK = 1024

Stream = Callable[[text_lines.Source, tables.Report], Iterator[Any]]  # the examples of a file; bad rows go to the second

_NEVER_PUBLISHED = (".csv", ".json", ".jsonl", ".ndjson", ".parquet")
_OF_FILES = ("file_format",)  # follows from each file's name
_KEEP_COLUMNS = "keep_columns"
_TAKEN = "input_"  # prefix of names that predictions use too


@dataclasses.dataclass(frozen=True)
class Inputs:
    """How to read any file for one model."""

    family: Family  # learned by the model
    published: Task | None  # task with a published file layout, or None
    own: Task | None  # task for custom columns; None if the family has none
    columns: Columns
    skip_bad_rows: bool
    keep_columns: bool = False  # chunks also hold all cells, see KeptChunk
    id_column: str | None = None  # of own tables: predictions have its ids

    @property
    def chunk_size(self) -> int:
        return CHUNK

    @property
    def numbers(self) -> str | None:
        """Pattern of ids that are line numbers; None if a column holds ids."""
        return None if self.columns.id_column else rf"{TEST}\w*-\d+(-\d+)?"

    def chunks(
        self, source: str, *, patience_s: float | None = None, report: tables.Report | None = None
    ) -> Iterator[list[Any]]:
        """Yields a file's examples in order, `CHUNK` at a time; one empty chunk if there are none.

        `source` is a path, `-` for standard input, or `text_lines.Elsewhere`. After `patience_s` seconds an incomplete chunk is
        yielded; None waits. `report` is called for each unusable row; None acts as `skip_bad_rows` says. Raises DataError.
        """
        task = self._task(source)
        split = task.splits("", TEST)[0]
        return chunked(
            lambda source, report: task.stream(source, split, report),
            source,
            report=report or left_out_or_refused(source, skip_bad_rows=self.skip_bad_rows),
            patience_s=patience_s,
            keep_columns=self.keep_columns,
            id_column=self.id_column if task is self.own else None,
        )

    def _task(self, source: str) -> Task:
        is_own = bool(self.columns.given()) or Path(files.uncompressed(source)).suffix.lower() in _NEVER_PUBLISHED
        task = self.own if self.published is None or is_own else self.published
        if task is None:
            raise FlagError(f"{source}: a model of {self.family.kind} reads only files in the layout of its task")
        return task


def left_out_or_refused(source: str, *, skip_bad_rows: bool) -> tables.Report:
    """Handler of unusable rows: counts and skips them, or stops at the first."""
    if skip_bad_rows:
        return tables.BadRows(source, skip=True)
    return _refuse


def _refuse(problem: DataError) -> None:
    raise BadRowsError([f"{problem}; --{SKIP} leaves such rows out"])


def chunked(
    stream: Stream,
    source: str,
    *,
    report: tables.Report,
    patience_s: float | None,
    size: int | None = None,
    keep_columns: bool = False,
    id_column: str | None = None,
) -> Iterator[list[Any]]:
    """Yields a file's examples, see `Inputs.chunks`; `size` None is `CHUNK`."""
    size = size or CHUNK
    source_rows = text_lines.Kept(source)
    if keep_columns:
        examples: Iterator[Any] = _watched(stream(source_rows, report), source_rows)
    else:
        examples = stream(source if isinstance(source, text_lines.Elsewhere) else text_lines.Once(source), report)
    full = iter(lambda: list(itertools.islice(examples, size)), [])
    chunks = full if patience_s is None else gathered(examples, size, patience_s)
    for chunk in itertools.chain([next(chunks, [])], chunks):
        yield _kept(chunk, source_rows, id_column) if keep_columns else chunk
    if isinstance(report, tables.BadRows):
        report.settle()


def refuse_other_task(task_name: str | None, record: Mapping[str, Any], prefix: str) -> None:
    """Raises FlagError if a checkpoint was trained on another task than that of a flag."""
    trained_on = record.get("task_name")
    if task_name is not None and trained_on not in (None, canonical_name(task_name)):
        raise FlagError(f"--task_name={task_name}: {prefix} was trained on {trained_on}; leave the flag out")


def inputs(
    trained: Trained,
    columns: Columns,
    *,
    task_name: str | None,
    skip_bad_rows: bool,
    keep_columns: bool = False,
    rules: Rules | None = None,
) -> Inputs:
    """How to read files for a model; `task_name` is only needed without a training record.

    Raises CheckpointError if labels are unknown or their number differs, FlagError for an unknown or different task, or for
    rules of another family.
    """
    refuse_other_task(task_name, trained.record, trained.prefix)
    record = trained.record
    if task_name is not None:
        task = get_task(task_name)
        record = {"task_name": task.name, **task.family.record(), **record}
    if "kind" not in record:
        raise CheckpointError(f"{trained.prefix}: no run_config.json beside it names its task; add --task_name")
    if record["kind"] == PRETRAINING:
        raise CheckpointError(f"{trained.prefix}: {names.no_labels()}")
    published = None if record["task_name"] == CUSTOM else registry.of_record(record)
    family = families.of_record(record) if published is None else published.family.as_trained(record)
    family = with_rules(family, rules.given() if rules else {})
    trained.refuse(family)
    texts = getattr(family, "texts", None)
    custom_task = own_task(record, columns, texts=texts, test_file="-") if registry.reads_own(record["kind"]) else None
    id_column = columns.id_column or record.get("id_column") or family.usual_id_column
    return Inputs(family, published, custom_task, columns, skip_bad_rows, keep_columns, id_column)


def own_task(record: Mapping[str, Any], columns: Columns, *, texts: int | None = None, **files: Any) -> Task:
    """Task of a trained model over other files, with the record's columns unless overridden; they need not have its ids.

    `texts` is the number of texts that rows of sentences must have; None for any.
    Raises FlagError if the record has no labels, or custom tables cannot hold the model's task.
    """
    if "kind" not in record:
        raise FlagError(f"task {CUSTOM}: needs the kind and names of labels from run_config.json of a run, which is missing")
    if record["kind"] == PRETRAINING:
        raise FlagError(f"task {CUSTOM}: {names.no_labels()}")
    if not registry.reads_own(record["kind"]):
        raise FlagError(
            f"task {CUSTOM} has no files of {record['kind']}, which the model has learned; name the task of its training"
        )
    overrides = columns.given()
    registry.reject_unrelated_settings(CUSTOM, overrides, record["kind"])
    learned: dict[str, Any] = {name: record[name] for name in lasting_names() if name in record and name not in _OF_FILES}
    if record["kind"] == MULTI_LABEL:
        learned.setdefault("label_separator", usual_separator(record["labels"]))
    if "text_a" in overrides:
        learned["text_b"] = None
    settings = of_values({**learned, **overrides, **files, "problem": record["kind"]})
    settings = dataclasses.replace(settings, needs_ids="id_column" in overrides, texts=texts)
    return registry.get_task(CUSTOM, settings, record["labels"])


def read_labelled(task: Task, source: str, split: str | None = None) -> list[Any]:
    """Returns the examples of a file that the user names, in the layout of a split, else of dev.

    Raises `BadRowsError` for unusable rows, unless the published file has as many.
    """
    split = split or task.splits("", DEV)[0]
    return tables.usable(
        lambda report: task.stream(source, split, report), source, skip=False, broken=getattr(task, "broken", 0.0)
    )


class KeptChunk(list[Any]):
    """Examples with all cells of their rows."""

    columns: Sequence[str] = ()  # names of the cells
    rows: Sequence[Sequence[Any]] = ()  # cells of each example
    ids: int | None = None  # place of the cell that is the id of the example; None if there is none

    def without_ids(self) -> KeptChunk:
        if self.ids is None:
            return self
        chunk, others = KeptChunk(self), [index for index in range(len(self.columns)) if index != self.ids]
        chunk.columns = [self.columns[index] for index in others]
        chunk.rows = [[row[index] for index in others] for row in self.rows]
        return chunk


def _watched(examples: Iterable[Any], source: Kept) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yields each example with its row's cells; FlagError if not a table, or column names are duplicated."""
    for example in examples:
        if source.columns is None or len(set(source.columns)) < len(source.columns):
            raise FlagError(f"--{_KEEP_COLUMNS}: {source} is not a table whose columns have different names")
        yield example, source.row


def _kept(pairs: Sequence[tuple[Any, Sequence[Any]]], source: Kept, id_column: str | None) -> KeptChunk:
    chunk = KeptChunk(example for example, _ in pairs)
    chunk.columns, chunk.rows = source.columns or (), [row for _, row in pairs]
    chunk.ids = _place(id_column, chunk.columns)
    return chunk


def _place(column: str | None, columns: Sequence[str]) -> int | None:
    """Place of a column, which is a name or a number; None if it is not among the columns."""
    if column in columns:
        return columns.index(column)
    return int(column) - 1 if column and column.isdecimal() and 1 <= int(column) <= len(columns) else None


def with_columns(layout: Layout, form: str, lines: str, examples: KeptChunk, *, first: bool) -> str:
    """Appends row columns to prediction lines, not the ids, which predictions have; conflicting names get the prefix `input_`.

    `first` adds the header; `form` is one of `names.FORMATS`. Raises FlagError if a prediction has several lines.
    """
    examples = examples.without_ids()
    if form == names.JSONL:
        predictions = [documents.json_value(line) for line in lines.split("\n")[:-1]]
        objects = (
            {**prediction, **dict(zip(_free(examples.columns, prediction), row))}
            for prediction, row in _pairs(predictions, examples)
        )
        return "".join(documents.to_json(line, ensure_ascii=False) + "\n" for line in objects)
    (header,) = _read(form, layout.header())
    head = [[*header, *_free(examples.columns, header)]] * first
    return delimited(form, [*head, *([*cells, *map(_text, row)] for cells, row in _pairs(_read(form, lines), examples))])


def _free(columns: Sequence[str], taken: Collection[str]) -> list[str]:
    others = {*columns, *taken}
    return [_unlike(others, name) if name in taken else name for name in columns]


def _unlike(others: Collection[str], name: str) -> str:
    return _unlike(others, f"{_TAKEN}{name}") if name in others else name


def _pairs(predictions: Sequence[Any], examples: KeptChunk) -> Iterator[tuple[Any, Sequence[Any]]]:
    if len(predictions) != len(examples):
        raise FlagError(
            f"--{_KEEP_COLUMNS}: a prediction of this model has several lines; --output_format={names.JSONL} has one of each"
        )
    return zip(predictions, examples.rows)


def _read(form: str, lines: str) -> list[list[str]]:
    if form == names.CSV:
        return [list(map(spreadsheets.original, row)) for row in csv.reader(io.StringIO(lines, newline=""))]
    return [line.split("\t") for line in lines.split("\n")[:-1]]


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else documents.to_json(value, ensure_ascii=False)
