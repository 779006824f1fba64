"""What there is in a task's files, and what is wrong with them; without TensorFlow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_tf import home
from bert_tf.errors import BertError, DataError, PreflightError
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.tasks.base import PURPOSES, TRAIN, Example, Task
from bert_tf.tasks.custom import CustomTask
from bert_tf.tasks.glue import GlueTask
from bert_tf.tasks.label_column import are_numbers
from bert_tf.tasks.survey import LIMITS, Survey, survey
from bert_tf.tokenization import casing
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

DEFAULT_VOCABULARY = (
    home.folder(os.environ) / "checkpoints" / "all-MiniLM-L6-v2" / "vocab.txt"
)  # where the default checkpoint is kept

_BAR = 40  # characters of a full one
_NAMED = 20  # labels that are listed


class Ruler(NamedTuple):
    """How long a text is."""

    unit: str
    size: Callable[[str], int]


def find_ruler(vocab_file: str | None, environment: Mapping[str, str]) -> Ruler:
    """Returns word pieces of --vocab_file, $BERT_BASE_DIR or the default checkpoint; words where it was not yet fetched.

    Args:
      vocab_file: the flag.
      environment: names a folder of a model.

    Raises:
      VocabularyError: the file cannot be read.
    """
    base = environment.get("BERT_BASE_DIR")
    path = Path(vocab_file) if vocab_file else Path(base) / "vocab.txt" if base else DEFAULT_VOCABULARY
    if path == DEFAULT_VOCABULARY and not path.is_file():
        return Ruler("words (--vocab_file counts word pieces, which are more)", lambda text: len(text.split()))
    vocabulary = Vocabulary.from_file(path)
    tokenizer = WordPieceTokenizer(vocabulary, lower_case=casing.find(vocabulary).lower_case)
    return Ruler(f"word pieces of {path}", lambda text: len(tokenizer.ids(text)))


def check(task: Task, data_dir: str | None, ruler: Ruler) -> None:
    """Prints what the splits of a task hold, and which rows are left out.

    Args:
      task: whose files they are.
      data_dir: their folder, where some may be missing; None where the task names each file.
      ruler: measures the texts.

    Raises:
      PreflightError: a split cannot be used, or none is there; one line for each problem.
    """
    print(f"{task.name}; lengths in {ruler.unit}, [CLS] and [SEP] included")
    refused: dict[str, None] = {}  # in order; what is wrong with the labels is found in each split
    train: Set[int] | None = None
    found = warned = 0
    for split, path in _splits(task, data_dir):
        if data_dir is not None and not path.exists():
            print(f"\n{split}: {path} is not there")
            continue
        found += 1
        problems: list[DataError] = []
        try:
            counts = survey(_examples(task, data_dir or "", split, problems), ruler.size, train or frozenset())
            warnings = list(_warnings(task, counts, is_train=split == TRAIN))
            print(f"\n{split}: {path}", *_described(task, counts, compared=train is not None), *warnings, sep="\n  ")
            warned += len(warnings)
            train = counts.texts if split == TRAIN else train
            if problems or not counts.rows:
                task.examples(data_dir or "", split)  # raises unless it reads the file all the same
                print(f"  left out       {len(problems)} rows", *problems, sep="\n    ")
        except BertError as error:
            refused.update(dict.fromkeys(map(str, [*problems, error])))
    if not found:
        refused[f"{data_dir}: none of the files of {task.name} is there"] = None
    if refused:
        raise PreflightError(list(refused))
    print(f"\nevery row can be used; warnings: {warned}" if warned else "\nno problem found")


def _splits(task: Task, data_dir: str | None) -> Iterator[tuple[str, Path]]:
    for purpose in PURPOSES:
        with contextlib.suppress(BertError):  # the task has no such split, or no such file was named
            # Of GLUE those too that the folder lacks.
            names = task.split_names.get(purpose, ()) if isinstance(task, GlueTask) else task.splits(data_dir or "", purpose)
            for split in names:
                yield split, task.file(data_dir or "", split)


def _examples(task: Task, data_dir: str, split: str, problems: list[DataError]) -> Iterable[Example]:
    path = task.file(data_dir, split)
    return task.examples(data_dir, split) if path.is_dir() else task.stream(path, split, problems.append)


def _described(task: Task, counts: Survey, *, compared: bool) -> Iterator[str]:
    yield f"rows           {counts.rows}"
    if not counts.rows:
        return
    if len(counts.numbers):
        numbers = counts.numbers
        yield f"labels         {numbers.min():g} to {numbers.max():g}, mean {numbers.mean():.3f}, deviation {numbers.std():.3f}"
    elif counts.labels:
        shares = [f"{name}: {counts.labels[name]} ({counts.labels[name] / counts.rows:.1%})" for name in task.family.labels]
        more = [f"and {len(shares) - _NAMED} others"] if len(shares) > _NAMED else []
        yield f"labels         {', '.join(shares[:_NAMED] + more)}"
    lengths = counts.lengths
    yield f"length         mean {lengths.mean():.1f}, median {np.median(lengths):.0f}, longest {lengths.max()}"
    for least, most, rows in counts.histogram():
        share = rows / counts.rows
        yield f"  {f'{least}-{most}':<12} {rows:>8} {share:>6.1%}  {'#' * round(_BAR * share)}".rstrip()
    yield "truncated at   " + ", ".join(f"{limit}: {counts.truncated(limit):.1%}" for limit in LIMITS)
    if counts.duplicates:
        yield f"duplicates     {_share(counts.duplicates, counts.rows)}"
    if compared:
        yield f"in train too   {_share(counts.in_train, counts.rows)}"


def _warnings(task: Task, counts: Survey, *, is_train: bool) -> Iterator[str]:
    """Yields what looks like a mistake, though every row can be used."""
    if counts.contradictions:
        yield f"warning        another label than an earlier row of the same text: {_share(counts.contradictions, counts.rows)}"
    if counts.repeated_ids:
        yield f"warning        the id of an earlier row: {_share(counts.repeated_ids, counts.rows)}"
    found = len(counts.labels)
    may_be_numbers = is_train and isinstance(task, CustomTask) and task.family.kind == CLASSIFICATION
    if may_be_numbers and found > 2 and 2 * found >= counts.rows and are_numbers(counts.labels):
        yield f"warning        {found} classes of {counts.rows} rows, all numbers: --problem={REGRESSION} learns numbers"


def _share(ids: Sequence[str], rows: int) -> str:
    examples = f": {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''}" if ids else ""
    return f"{len(ids)} rows ({len(ids) / rows:.1%}){examples}"
