"""Checks a task's files and counts their rows."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import logging
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import extensions, home, tasks
from bert_tf.encoders import ENCODERS
from bert_tf.errors import BadRowsError, BertError, DataError, FlagError, PreflightError
from bert_tf.extensions.data.survey import LIMITS, Cut, Survey, survey
from bert_tf.features.columns import MANY_TRUNCATED, MANY_UNKNOWN, UNKNOWN
from bert_tf.features.long_text import WINDOWS
from bert_tf.fields import ROW
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.io import files
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import group, read_settings, setting
from bert_tf.tasks.base import PURPOSES, TRAIN, Task
from bert_tf.tasks.glue import GlueTask
from bert_tf.tasks.registry import canonical_name, get_task, refuse_unlabelled, reject_unrelated_settings
from bert_tf.tasks.sentence.task import CustomTask, are_numbers, sorted_names
from bert_tf.tasks.settings import CUSTOM, TaskSettings, path_names, unlabelled_names
from bert_tf.tokenization import casing, text_rules
from bert_tf.tokenization.tokenizer import file_in, read_tokenizer, tokenizer_of

_BAR = 40  # characters of a full bar
_LONGEST = 128  # the default --max_seq_length
_NAMED = 20  # labels that are listed
_HUGGINGFACE_CONFIG = "config.json"


@dataclasses.dataclass(frozen=True)
class CheckSettings:
    data_dir: str | None = setting(None, "folder of a task's files", positional=True)
    task_name: str | None = setting(None, "task of the files; default: the folder's name")
    vocab_file: str | None = setting(
        None, "vocabulary for lengths; default: that of $BERT_BASE_DIR or of the default checkpoint"
    )
    tasks: TaskSettings = group(TaskSettings, without=unlabelled_names())
    given: frozenset[str] = frozenset()  # names of explicitly given settings

    def task(self) -> Task:
        folder = self.data_dir
        if not self.task_name and folder is None:
            raise FlagError(f"data check: name a folder, or --task_name={CUSTOM} and its files")
        name = canonical_name(self.task_name or _named_by(Path(folder or "")))
        refuse_unlabelled(name)
        reject_unrelated_settings(name, self.given, self.tasks.custom.problem)
        task = get_task(name, self.tasks)
        if task.reads_folder and folder is None:
            raise FlagError(f"data check: name the folder of {task.name}")
        if not task.reads_folder and (folder or not self.given.intersection(path_names())):
            raise FlagError(f"data check: --task_name={task.name} takes --train_file, --dev_file, --test_file and no folder")
        if folder:
            _refuse_missing(folder)
        return task


def _named_by(folder: Path) -> str:
    _refuse_missing(folder)
    try:
        return canonical_name(folder.absolute().name)
    except FlagError as error:
        problem = str(error).removeprefix("--task_name: ")
        raise DataError(f"the folder's name is not a task; add --task_name: {problem}", folder) from error


def _refuse_missing(folder: str | Path) -> None:
    why = files.missing_folder(folder)
    if why:
        raise DataError(why, folder)


def find_ruler(vocab_file: str | None, environment: Mapping[str, str]) -> tuple[str, Cut, int, int]:
    """Unit of lengths, what cuts a text into units, the unknown one, and the number of [SEP] between two texts.

    Word pieces of --vocab_file, $BERT_BASE_DIR or the default checkpoint; words if that has no vocabulary.
    """
    default = home.folder(environment) / "checkpoints" / "all-MiniLM-L6-v2"
    folder = Path(environment.get("BERT_BASE_DIR") or default)
    path = Path(vocab_file) if vocab_file else file_in(folder, _usual_in(folder))
    if path is None:
        return "words (--vocab_file counts word pieces, which are more)", str.split, -1, 1
    vocabulary = read_tokenizer(path)
    tokenizer = tokenizer_of(vocabulary, lower_case=casing.find(vocabulary).lower_case)
    return f"word pieces of {path}", tokenizer.ids, vocabulary.unk_id, vocabulary.separators


def _usual_in(folder: Path) -> str:
    """The file with the tokenizer of the model in a folder, as training reads it."""
    model_type = str(text_rules.content(folder / _HUGGINGFACE_CONFIG).get("model_type"))
    return ENCODERS.get(model_type, ENCODERS["bert"]).vocabulary


@dataclasses.dataclass(frozen=True)
class CheckedSplit:
    split: str
    path: Path
    counts: Survey | None = None  # None if the file is missing or cannot be read
    lines: tuple[str, ...] = ()  # report on the split
    warnings: tuple[str, ...] = ()  # likely mistakes in usable rows
    left_out: tuple[DataError, ...] = ()  # unusable rows that the task skips

    def __str__(self) -> str:
        """Empty if the file cannot be read."""
        lines = [*self.lines, *self.warnings]
        if self.left_out:
            lines.append("\n    ".join([f"left out       {len(self.left_out)} rows", *map(str, self.left_out)]))
        return "\n  ".join(lines)


@dataclasses.dataclass(frozen=True)
class Checked:
    task: str
    unit: str  # of lengths
    splits: tuple[CheckedSplit, ...]  # in the order train, dev, test
    problems: tuple[str, ...]  # why the files cannot be used; empty if they can

    def __str__(self) -> str:
        parts = [f"{self.task}; lengths in {self.unit}, [CLS] and [SEP] included", *map(str, self.splits)]
        if not self.problems:
            parts.append(self._last_line)
        return "\n\n".join(filter(None, parts))

    @property
    def _last_line(self) -> str:
        """Sums up all problems with rows."""
        left_out = sum(len(split.left_out) for split in self.splits)
        surveys = [split.counts for split in self.splits if split.counts]
        counted = {
            "warnings": sum(len(split.warnings) for split in self.splits),
            "duplicates": sum(len(counts.duplicates) for counts in surveys),
            "in train too": sum(len(counts.in_train) for counts in surveys),
        }
        notes = [f"{name}: {count}" for name, count in counted.items() if count]
        if not notes and not left_out:
            return "no problem found"
        return "; ".join([f"rows left out: {left_out}" if left_out else "every row can be used", *notes])

    def _repr_html_(self) -> str:
        text = "\n".join([str(self), *self.problems])
        return f"<pre>{html.escape(text)}</pre>"


@takes(CheckSettings)
def check_data(data_dir: str | os.PathLike[str] | None = None, **settings: Any) -> Checked:
    """Counts rows, labels, lengths and duplicates, and reports unusable rows; as `python -m bert_tf data check`.

    Args:
      data_dir: folder of a task's files; None for own files, named by `train_file` etc.
      **settings: the command's flags, by name.

    Returns:
      The findings; `problems` says why the data are unusable and is empty if they are usable.

    Raises:
      BertError: the settings contradict each other, or the folder is missing.
    """
    return check(read_settings(CheckSettings, {"data_dir": data_dir, **settings}), environment=os.environ)


def check(settings: CheckSettings, *, environment: Mapping[str, str]) -> Checked:
    """Checks every split of a task; the folder may lack some files."""
    task, data_dir = settings.task(), settings.data_dir
    unit, cut, unknown, separators = find_ruler(settings.vocab_file, environment)
    refused: dict[str, None] = {}  # in order; a problem with the labels recurs in each split
    train: Set[int] | None = None
    splits: list[CheckedSplit] = []
    for split, path in splits_of(task, data_dir):
        if data_dir is not None and not path.exists():
            splits.append(CheckedSplit(split, path, lines=(f"{split}: {path} is missing",)))
            continue
        splits.append(CheckedSplit(split, path))
        problems: list[DataError] = []
        try:
            with _heard() as heard:
                read = task.examples(data_dir or "", split) if path.is_dir() else task.stream(path, split, problems.append)
                counts = survey(read, cut, train or frozenset(), unknown, separators)
                lines = (f"{split}: {path}", *_described(task, counts, compared=train is not None))
            of_readers = [f"warning        {message.removeprefix(f'{path}: ')}" for message in dict.fromkeys(heard)]
            warnings = (*_warnings(task, counts, is_train=split == TRAIN), *of_readers)
            splits[-1] = CheckedSplit(split, path, counts, lines, warnings)
            train = counts.texts if split == TRAIN else train
            if problems or not counts.rows:
                with _heard():  # warnings of rows left out
                    task.examples(data_dir or "", split)  # raises if it cannot read the file
                splits[-1] = dataclasses.replace(splits[-1], left_out=tuple(problems))
        except BertError as error:
            rest = [] if isinstance(error, BadRowsError) else [error]  # its rows are in `problems` already
            refused.update(dict.fromkeys(map(str, [*problems, *rest])))
    if all(data_dir is not None and not split.path.exists() for split in splits):
        refused[f"{data_dir}: has no files of {task.name}"] = None
    return Checked(task.name, unit, tuple(splits), tuple(refused))


@contextlib.contextmanager
def _heard() -> Iterator[list[str]]:
    """Collects the warnings of readers within the block instead of logging them."""
    loggers, messages = [logging.getLogger(room.__name__) for room in (tasks, extensions)], list[str]()
    collector = logging.Handler(logging.WARNING)
    collector.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    propagated = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.propagate = False
        logger.addHandler(collector)
    try:
        yield messages
    finally:
        for logger, propagates in zip(loggers, propagated):
            logger.removeHandler(collector)
            logger.propagate = propagates


def splits_of(task: Task, data_dir: str | None) -> Iterator[tuple[str, Path]]:
    for purpose in PURPOSES:
        with contextlib.suppress(BertError):  # the task has no such split, or no such file was named
            # For GLUE, including splits missing from the folder.
            names = task.split_names.get(purpose, ()) if isinstance(task, GlueTask) else task.splits(data_dir or "", purpose)
            for split in names:
                yield split, task.file(data_dir or "", split)


def _described(task: Task, counts: Survey, *, compared: bool) -> Iterator[str]:
    yield f"rows           {counts.rows}"
    if not counts.rows:
        return
    if len(counts.numbers):
        numbers = counts.numbers
        yield f"labels         {numbers.min():g} to {numbers.max():g}, mean {numbers.mean():.3f}, deviation {numbers.std():.3f}"
    elif counts.labels:
        of_rows = all(field.axis == ROW for field in task.family.targets)  # else of words
        total = counts.rows if of_rows else sum(counts.labels.values())
        names = task.family.labels or (sorted_names(counts.labels) if are_numbers(counts.labels) else ())  # numbers of options
        shares = [f"{name}: {counts.labels[name]} ({counts.labels[name] / total:.1%})" for name in names]
        shares = shares or [f"{len(counts.labels)} different"]
        more = [f"and {len(shares) - _NAMED} others"] if len(shares) > _NAMED else []
        yield f"labels         {', '.join(shares[:_NAMED] + more)}"
    lengths = counts.lengths
    yield f"length         mean {lengths.mean():.1f}, median {np.median(lengths):.0f}, longest {lengths.max()}"
    for least, most, rows in counts.histogram():
        share = rows / counts.rows
        yield f"  {f'{least}-{most}':<12} {rows:>8} {share:>6.1%}  {'#' * round(_BAR * share)}".rstrip()
    yield f"{'need several windows at' if _is_in_windows(task) else 'truncated at':<14} " + ", ".join(
        f"{limit}: {counts.truncated(limit):.1%}" for limit in LIMITS
    )
    if counts.unlabelled:
        yield f"no label       {_share(counts.unlabelled, counts.rows)}"
    if counts.duplicates:
        yield f"duplicates     {_share(counts.duplicates, counts.rows)}"
    if compared:
        yield f"in train too   {_share(counts.in_train, counts.rows)}"


def _is_in_windows(task: Task) -> bool:
    with contextlib.suppress(BertError):  # the family may depend on a missing file
        return task.family.trains_on_windows
    return False


def _warnings(task: Task, counts: Survey, *, is_train: bool) -> Iterator[str]:
    if counts.contradictions:
        yield f"warning        label differs from an earlier row of the same text: {_share(counts.contradictions, counts.rows)}"
    if counts.miscoded:
        problem = "texts have signs of a wrong encoding, as U+0092 or \u00c3\u00a9; convert the file from its own"
        yield f"warning        {problem}: {_share(counts.miscoded, counts.rows)}"
    if counts.unknown > MANY_UNKNOWN:
        yield f"warning        {UNKNOWN.format(100 * counts.unknown)}"
    if counts.in_train:
        yield f"warning        in train too, so their scores say little: {_share(counts.in_train, counts.rows)}"
    long = 0.0 if _is_in_windows(task) or not counts.rows else counts.truncated(_LONGEST)
    if long > MANY_TRUNCATED:
        problem = f"longer than {_LONGEST}, the default --max_seq_length: {long:.1%} of the rows, which are cut"
        yield f"warning        {problem}; raise it, or add --long_text={WINDOWS}"
    if counts.repeated_ids:
        yield f"warning        id repeats an earlier row's: {_share(counts.repeated_ids, counts.rows)}"
    classes = len(counts.labels)
    is_one_number = len(set(counts.numbers.tolist())) == 1
    if is_train and counts.rows > 1 and (is_one_number or (classes == 1 and task.family.kind == CLASSIFICATION)):
        yield "warning        all rows have the same label: nothing can be learned"
    may_be_numbers = is_train and isinstance(task, CustomTask) and task.family.kind == CLASSIFICATION
    if may_be_numbers and classes > 2 and 2 * classes >= counts.rows and are_numbers(counts.labels):
        yield f"warning        {classes} classes of {counts.rows} rows, all numbers: --problem={REGRESSION} learns numbers"


def _share(ids: Sequence[str], rows: int) -> str:
    examples = f": {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''}" if ids else ""
    return f"{len(ids)} rows ({len(ids) / rows:.1%}){examples}"


def _print(call: Call) -> None:
    checked = check(call.settings, environment=os.environ)
    print(checked)
    if checked.problems:
        raise PreflightError(list(checked.problems))


COMMAND = Command(
    "counts rows, labels, lengths, duplicates and contradictions, and lists unusable rows",
    CheckSettings,
    _print,
    example="python -m bert_tf data check --task_name=custom --train_file=train.csv --text_a=text --label_column=label",
    first=("task_name", "train_file", "dev_file", "text_a", "label_column"),
    log=False,
)
