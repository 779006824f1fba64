"""Audits a task's data: probable label errors, duplicates, leaks, outliers, and texts that the model cannot read well."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import extension
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import FlagError, OutputError
from bert_tf.extensions.audit import duplicates, findings, labels, page, predictions, texts
from bert_tf.extensions.audit.findings import Finding, Row
from bert_tf.extensions.audit.labels import Floats
from bert_tf.extensions.audit.rows import splits_of, survey
from bert_tf.head_spec import CLASSIFICATION, MEAN, MULTI_LABEL
from bert_tf.io import atomic, files
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, table
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import group, read_settings, setting
from bert_tf.tasks.base import TRAIN, Example, Task
from bert_tf.tasks.registry import canonical_name, get_task, refuse_unlabelled, reject_unrelated_settings
from bert_tf.tasks.settings import CUSTOM, TaskSettings, unlabelled_names
from bert_tf.tokenization.tokenizer import word_pieces
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

TABLE, PAGE = "audit.csv", "audit.html"

_RARE = 0.1  # size of a class relative to the largest one


@dataclasses.dataclass(frozen=True)
class AuditSettings:
    task_name: str = setting(None, "task of the data", required=True)
    data_dir: str | None = setting(
        None, "folder of the task's files; default: as in training", refuse_missing=files.refuse_missing_folder
    )
    output_dir: str = setting(None, f"folder for {TABLE} and {PAGE}", required=True, written=True)
    predictions: str | None = setting(
        None,
        "runs with --folds or prediction files of training rows, comma-separated (their mean); default: a model of vectors",
    )
    checkpoint: str | None = setting(
        None,
        "model of the vectors: checkpoint, run or Hugging Face folder; default: $BERT_BASE_DIR or the default checkpoint",
        refuse_missing=refuse_missing_model,
    )
    max_seq_length: int = setting(128, "maximum input length in word pieces", lowest=1)
    least_overlap: float = setting(
        duplicates.OVERLAP,
        "shared words or letters (Jaccard index) from which rows are near duplicates",
        lowest=0.1,
        highest=1.0,
    )
    overwrite: bool = setting(False, f"replace an edited {TABLE}")
    tasks: TaskSettings = group(TaskSettings, without=unlabelled_names())
    given: frozenset[str] = frozenset()  # names of explicitly given settings

    def task(self) -> Task:
        name = canonical_name(self.task_name)
        refuse_unlabelled(name)
        reject_unrelated_settings(name, self.given, self.tasks.custom.problem)
        task = get_task(name, self.tasks)
        if not task.reads_folder and not any((self.tasks.custom.train_file, self.tasks.custom.dev_file)):
            raise FlagError(f"data audit: --task_name={CUSTOM} takes --train_file and --dev_file")
        return task


@dataclasses.dataclass(frozen=True)
class AuditResult(Printed):
    findings: tuple[Finding, ...]  # most important first
    summary: str
    table: Path
    page: Path

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind."""
        return findings.counts(self.findings)

    def __str__(self) -> str:
        return f"{self.summary}\n\n{self.page}"


@takes(AuditSettings)
def audit_data(**settings: Any) -> AuditResult:
    """Lists likely mistakes in a task's data, in a table and on a page; as `python -m bert_tf data audit`.

        bert_tf.audit_data(task_name="MRPC", output_dir="out/audit").counts

    Args:
      **settings: the command's flags, by name.

    Returns:
      The findings, `counts` by kind, and the paths `table` and `page`.

    Raises:
      BertError: invalid settings or input.
    """
    return audit(read_settings(AuditSettings, settings), environment=os.environ)


def audit(settings: AuditSettings, *, environment: Mapping[str, str]) -> AuditResult:
    for name in ("vectors", "report"):
        extension.needed(name, "data audit")
    task = settings.task()
    _refuse_edited(Path(settings.output_dir), overwrite=settings.overwrite)
    rows = _rows(task, settings, environment)
    folder = atomic.make_folder(settings.output_dir)
    train = [number for number, row in enumerate(rows) if row.is_train and row.example.label is not None]
    examples = [rows[number].example for number in train]
    issues, judged = predictions.issues(settings.predictions, task.family, examples) if settings.predictions else (None, [])
    keys = duplicates.keys(rows)
    _announce(len(set(keys)))
    vectors, tokenizer = _encoded(rows, settings)
    if issues is None:  # without predictions
        issues = labels.from_vectors(task.family, examples, vectors[train])
    no_label = "" if task.family.may_have_no_label else None
    ranked = findings.ranked(
        [
            *(Finding(findings.LABEL, one.score, rows[train[one.row]], one.suggested or no_label) for one in issues or ()),
            *duplicates.exact(rows, keys),
            *duplicates.near(rows, keys, settings.least_overlap),
            *duplicates.outliers(rows, keys, vectors),
            *texts.unreadable(rows, task.family, tokenizer, settings.max_seq_length),
        ]
    )
    basis = settings.predictions or ("a linear model of vectors" if issues is not None else "nothing")
    hint = "" if settings.predictions else "; more precise with --predictions=RUN, a run with --folds=5"
    kinds = [(kind, f"{count:,}", findings.KINDS[kind]) for kind, count in findings.counts(ranked).items()]
    notes = f"label errors: by {basis}{hint}", *judged, *_rare_classes(examples, task)
    summary = "\n".join([*table(("problem", "rows", "score"), kinds, left=(0, 2)), "", *notes])
    separator = getattr(task.family, "label_separator", " ")
    result = AuditResult(tuple(ranked), summary, folder / TABLE, folder / PAGE)
    custom = settings.tasks.custom
    name = Path(custom.train_file or custom.dev_file or task.name).name
    cells = findings.table(ranked, separator).encode(errors="backslashreplace")
    text = page.render(name, task.family, ranked, notes, separator, digest=hashlib.sha256(cells).hexdigest())
    _refuse_edited(folder, overwrite=settings.overwrite)  # again: it took minutes
    _write(result, cells, text)
    return result


def _refuse_edited(folder: Path, *, overwrite: bool) -> None:
    """Raises OutputError for a table or page that is not as the audit wrote it, and for names that cannot be written."""
    for path in (folder / TABLE, folder / PAGE):
        why = files.missing(path)
        if why not in (None, files.NO_FILE):
            raise OutputError(f"{path}: cannot write: {why}; name another --output_dir")
    digest = page.written_with(folder / PAGE)
    for path in (folder / TABLE, folder / PAGE):
        if not overwrite and path.exists() and (not digest or (path.name == TABLE and files.digest(path) != digest)):
            raise OutputError(f"{path}: is not as the audit wrote it; name another --output_dir, or add --overwrite")


def _write(result: AuditResult, table: bytes, text: str) -> None:
    """Writes both files before either takes its name."""
    is_written = False
    try:
        with atomic.replacing(result.page) as whole_page:
            whole_page.write_bytes(text.encode(errors="backslashreplace"))  # the name of a file may hold any byte
            with atomic.replacing(result.table) as whole_table:
                whole_table.write_bytes(table)
            is_written = True
    except OutputError as error:
        if is_written:
            raise OutputError(f"{str(error).removesuffix(atomic.UNCHANGED)}; {result.table} is written") from error
        raise


def _rows(task: Task, settings: AuditSettings, environment: Mapping[str, str]) -> list[Row]:
    from bert_tf.training import sources

    data = sources.find_data(task, settings.data_dir, environment=environment)
    names = task.splits(data.folder, TRAIN) if not settings.tasks.custom.dev_file or settings.tasks.custom.train_file else ()
    rows: list[Row] = []
    for split, path in splits_of(task, str(data.folder) if data.has_folder else None):
        if path.exists() or split in names:
            examples = task.examples(data.folder, split)
            log.info("%s: %d rows of %s", split, len(examples), path)
            rows += [findings.row_of(split, example, is_train=split in names) for example in examples]
    return rows


def _announce(rows: int) -> None:
    """Logs an estimate, if it is long, before anything is computed."""
    minutes = duplicates.seconds(rows) / 60
    if minutes >= 1:
        log.info("%d different rows: comparing all pairs takes about %.0f minutes (it grows with their square)", rows, minutes)


def _encoded(rows: Sequence[Row], settings: AuditSettings) -> tuple[Floats, WordPieceTokenizer]:
    """Returns vectors [rows, 2, D] of the texts, zero for none, and the model's tokenizer; equal texts are encoded once.

    A vector has the first, a middle and the last layer: words, and their meaning in context.
    """
    from bert_tf.extensions.vectors.encode import encoder  # imports TensorFlow when it is called

    numbers = {text: n for n, text in enumerate(dict.fromkeys(text for row in rows for text in row.texts if text.strip()))}
    began = time.monotonic()
    with encoder(settings.checkpoint, max_seq_length=settings.max_seq_length) as model:
        tokenizer = word_pieces(model.trained.tokenizer, "data audit")
        depth = model.trained.config.num_hidden_layers
        layers = sorted({0, depth // 2, depth - 1})
        vectors = np.asarray(model.encode(list(numbers), pooling=MEAN, layers=layers))
    log.info("%d texts encoded in %.0f s", len(numbers), time.monotonic() - began)
    vectors = vectors.reshape(len(vectors), len(layers), -1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True) * np.sqrt(len(layers))
    vectors = np.concatenate([vectors, np.zeros_like(vectors[:1])]).reshape(len(vectors) + 1, -1)
    return vectors[[[numbers.get(text, -1) for text in row.texts] for row in rows]], tokenizer


def _rare_classes(examples: Sequence[Example], task: Task) -> Iterator[str]:
    if task.family.kind in (CLASSIFICATION, MULTI_LABEL):
        counts = survey(examples, str.split).labels
        for label in task.family.labels:
            if counts[label] < _RARE * max(counts.values(), default=0):
                yield f"rare class: {label}, {counts[label]:,} rows; the largest has {max(counts.values()):,}"


def _print(call: Call) -> None:
    print(audit(call.settings, environment=os.environ))


COMMAND = Command(
    "lists probable label errors, duplicates, leaks into train, outliers: a table to correct, and a page",
    AuditSettings,
    _print,
    example="python -m bert_tf data audit --task_name=MRPC --output_dir=out/audit",
    first=("task_name", "data_dir", "train_file", "predictions", "output_dir"),
)
