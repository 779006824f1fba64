"""Audits a task's data: probable label errors, duplicates, leaks, outliers, and texts that the model cannot read well."""

from __future__ import annotations

import collections
import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.audit import duplicates, findings, labels, page, predictions
from bert_tf.audit.findings import Finding, Row
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL
from bert_tf.io import atomic
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.operations.data.check import splits_of
from bert_tf.settings import group, read, setting
from bert_tf.tasks.base import TRAIN, Task
from bert_tf.tasks.custom import NAME as CUSTOM_NAME
from bert_tf.tasks.registry import canonical_name, get_task, reject_unrelated_settings
from bert_tf.tasks.settings import TaskSettings
from bert_tf.tasks.survey import survey
from bert_tf.tokenization import counting
from bert_tf.tokenization.vocabulary import UNK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer, words

if TYPE_CHECKING:  # imports TensorFlow
    from bert_tf.vectors.text_encoder import Encoder

Summary = tuple[tuple[str, ...], ...]

TABLE, PAGE = "audit.csv", "audit.html"

_RARE = 0.1  # size of a class relative to the largest one
_UNKNOWN = 0.1  # share of [UNK]
_FRAGMENTED = 3.0  # pieces per word; 1.1 to 1.5 is usual
_LEAST_WORDS = 5  # of a text that is judged by its pieces


@dataclasses.dataclass(frozen=True)
class AuditSettings:
    task_name: str = setting(None, "task of the data", required=True)
    data_dir: str | None = setting(None, "folder of the task's files; default: as in training")
    output_dir: str = setting(None, f"folder for {TABLE} and {PAGE}", required=True)
    predictions: str | None = setting(
        None, "run with --folds, or prediction file of training rows; default: a linear model of vectors, in five folds"
    )
    checkpoint: str | None = setting(
        None, "model of the vectors: checkpoint, run or Hugging Face folder; default: $BERT_BASE_DIR or the default checkpoint"
    )
    max_seq_length: int = setting(128, "maximum input length in word pieces", lowest=1)
    least_overlap: float = setting(
        duplicates.OVERLAP, "shared words or letters (Jaccard index) from which rows are near duplicates", lowest=0.1
    )
    tasks: TaskSettings = group(TaskSettings)
    given: frozenset[str] = frozenset()  # names of those that are not left to their defaults

    def task(self) -> Task:
        name = canonical_name(self.task_name)
        reject_unrelated_settings(name, self.given, self.tasks.custom.problem)
        task = get_task(name, self.tasks)
        if not task.reads_folder and not any((self.tasks.custom.train_file, self.tasks.custom.dev_file)):
            raise FlagError(f"data audit: --task_name={CUSTOM_NAME} takes --train_file and --dev_file")
        return task


@dataclasses.dataclass(frozen=True)
class Audited(Printed):
    """Findings of an audit, most important first; `str()` is the summary."""

    task: str
    findings: tuple[Finding, ...]
    summary: Summary  # of each split: rows, lengths and pieces; the first row names the columns
    notes: tuple[str, ...]
    table: Path
    page: Path

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind."""
        found = collections.Counter(one.problem for one in self.findings)
        return {kind: found[kind] for kind in findings.KINDS}

    def __str__(self) -> str:
        head, *rows = self.summary
        kinds = [(kind, f"{count:,}", findings.KINDS[kind]) for kind, count in self.counts.items()]
        parts = (table(head, rows), table(("problem", "rows", "score"), kinds, left=(0, 2)), self.notes, [f"{self.page}"])
        return "\n\n".join("\n".join(lines) for lines in map(list, parts) if lines)


@takes(AuditSettings)
def audit_data(**settings: Any) -> Audited:
    """Lists likely mistakes in a task's data, in a table and on a page; as `python -m bert_tf data audit`.

        bert_tf.audit_data(task_name="MRPC", output_dir="out/audit").counts

    Args:
      **settings: the command's flags, by name.

    Returns:
      The findings, `counts` by kind, and the paths `table` and `page`.

    Raises:
      BertError: invalid settings or input.
    """
    return audit(read(AuditSettings, settings), environment=os.environ)


def audit(settings: AuditSettings, *, environment: Mapping[str, str]) -> Audited:
    task = settings.task()
    rows = _rows(task, settings, environment)
    folder = atomic.make_folder(settings.output_dir)
    train = [number for number, row in enumerate(rows) if row.is_train and row.example.label is not None]
    examples = [rows[number].example for number in train]
    issues = predictions.issues(settings.predictions, task.family, examples) if settings.predictions else None
    from bert_tf.operations.encode import encoder  # imports TensorFlow when it is called

    with encoder(settings.checkpoint, max_seq_length=settings.max_seq_length) as model:
        sides = _vectors(rows, model)
        tokenizer = model.trained.tokenizer
    if issues is None:
        first, second = sides[0][train], sides[1][train]
        pairs = [first, second, np.abs(first - second), first * second] if second.any() else [first]
        issues = labels.from_vectors(task.family, examples, np.concatenate(pairs, axis=1))
    keys = duplicates.keys(rows)
    lengths, summary = _lengths(rows, tokenizer, settings.max_seq_length)
    both = np.concatenate(sides, axis=1)
    units = both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-12)
    found = findings.in_order(
        [
            *(Finding(findings.LABEL, issue.score, rows[train[issue.row]], issue.suggested) for issue in issues or ()),
            *duplicates.exact(rows, keys),
            *duplicates.by_vectors(rows, keys, units, settings.least_overlap),
            *lengths,
            *_imbalance(rows, task),
        ]
    )
    notes = [f"label errors: by {settings.predictions}"]
    if not settings.predictions:
        said = "by a linear model of vectors; more precise" if issues is not None else "not estimated without predictions"
        notes = [f"label errors: {said}: train with --folds=5, then add --predictions=RUN"]
    separator = getattr(task.family, "label_separator", " ")
    done = Audited(task.name, tuple(found), summary, tuple(notes), folder / TABLE, folder / PAGE)
    atomic.write_text(done.table, findings.table(found, separator))
    atomic.write_text(done.page, page.render(task.name, found, summary, notes, separator))
    return done


def _rows(task: Task, settings: AuditSettings, environment: Mapping[str, str]) -> list[Row]:
    from bert_tf.training import sources

    data = sources.find_data(task, settings.data_dir, environment=environment)
    names = task.splits(data.folder, TRAIN) if not settings.tasks.custom.dev_file or settings.tasks.custom.train_file else ()
    found = []
    for split, path in splits_of(task, str(data.folder) if data.has_folder else None):
        if path.exists() or split in names:
            examples = task.examples(data.folder, split)
            log.info("%s: %d rows of %s", split, len(examples), path)
            found += [findings.row_of(split, one, is_train=split in names) for one in examples]
    return found


def _vectors(rows: Sequence[Row], model: Encoder) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns vectors of the first and the second texts, zero for none; equal texts are encoded once."""
    began = time.monotonic()
    texts = {text: place for place, text in enumerate(dict.fromkeys(text for row in rows for text in row[3:] if text.strip()))}
    vectors = np.concatenate([model.encode(list(texts), normalize=True), np.zeros([1, model.trained.config.hidden_size])])
    log.info("%d texts encoded in %.0f s", len(texts), time.monotonic() - began)
    vectors = vectors.astype(np.float32)
    first, second = ([texts.get(str(row[side]), -1) for row in rows] for side in (3, 4))
    return vectors[first], vectors[second]


def _lengths(rows: Sequence[Row], tokenizer: WordPieceTokenizer, most: int) -> tuple[list[Finding], Summary]:
    """Returns rows that are cut or badly split, and a line of the summary for each split."""
    unknown = tokenizer.vocabulary.ids([UNK])[0]
    found: list[Finding] = []
    lines = [("split", "rows", "mean length", "longest", f"over {most}", "pieces a word", "[UNK]")]
    for split in dict.fromkeys(row.split for row in rows):
        own = [row for row in rows if row.split == split]
        counts = survey((row.example for row in own), lambda text: len(tokenizer.ids(text)))
        fertility = counting.fertility_of(
            counting.count([counting.chunks([" ".join(row[3:]) for row in own])], lower_case=tokenizer.lower_case), tokenizer
        )
        sizes = (f"{counts.lengths.mean():.1f}", str(counts.lengths.max()), f"{counts.truncated(most):.1%}")
        of_pieces = (f"{fertility.pieces_a_word:.2f}", f"{fertility.unknown_share:.2%}")
        lines.append((split, f"{counts.rows:,}", *sizes, *of_pieces))
        for row, length in zip(own, counts.lengths.tolist()):
            if length > most:
                found.append(Finding(findings.TRUNCATED, most / length, row))
            found += _badly_split(row, tokenizer, unknown)
    return found, tuple(lines)


def _badly_split(row: Row, tokenizer: WordPieceTokenizer, unknown: int) -> Iterator[Finding]:
    text = " ".join(row[3:])
    pieces = tokenizer.ids(text)
    share = pieces.count(unknown) / max(len(pieces), 1)
    if share >= _UNKNOWN:
        yield Finding(findings.UNKNOWN, share, row)
    if len(pieces) >= _FRAGMENTED * _LEAST_WORDS:
        count = sum(1 for _ in words(text, lower_case=tokenizer.lower_case))
        if count >= _LEAST_WORDS and len(pieces) >= _FRAGMENTED * count:
            yield Finding(findings.FRAGMENTED, len(pieces) / count, row)


def _imbalance(rows: Sequence[Row], task: Task) -> Iterator[Finding]:
    if task.family.kind not in (CLASSIFICATION, MULTI_LABEL):
        return
    train = [row for row in rows if row.is_train]
    counts = survey((row.example for row in train), len).labels
    for label in task.family.labels:
        if counts[label] < _RARE * max(counts.values(), default=0):
            share = counts[label] / max(counts.values())
            yield Finding(findings.IMBALANCE, share, split=train[0].split, label=f"{label}: {counts[label]} rows")


def _print(call: Call) -> None:
    print(audit(call.settings, environment=os.environ))


COMMAND = Command(
    "lists probable label errors, duplicates, leaks into train, outliers: a table to correct, and a page",
    AuditSettings,
    _print,
)
