"""Evaluates checkpoints on labelled datasets: each pair is a table row."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from bert_tf import run_layout
from bert_tf.batch import loading, trained
from bert_tf.batch.checkpoints import Named
from bert_tf.batch.engine import Engine, InferenceOptions
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError, CheckpointError, FlagError, OutputError
from bert_tf.extensions.evaluate.results_table import Key, ResultsTable, Row
from bert_tf.features.cache import examples_digest
from bert_tf.features.columns import Features
from bert_tf.io import documents
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Example, Family, Task
from bert_tf.tasks.decision import DECISION
from bert_tf.tasks.families import rules_of, with_rules

T = TypeVar("T")
Claim = Callable[..., "AbstractContextManager[str | None]"]  # see `divided`


def divided(pieces: Iterable[T], claim: Claim, shared: Callable[[T], Hashable]) -> Generator[T, None, None]:
    """Yields each piece while this process holds its claim; those of others come last, once done or abandoned.

    Claims of a killed process are released, so a last process gets all remaining pieces. The caller must check whether another
    process has done the piece meanwhile, and close the generator to give up the claim. `claim` yields None, or the other
    holder (`wait=True` waits for it). `shared` is the preparation a piece needs: while another process works on a piece with
    the same preparation, its other pieces are left to it as long as others remain.
    """
    theirs: set[Hashable] = set()
    left, waiting = [], {}
    for piece in pieces:
        if shared(piece) not in theirs:
            with claim(piece) as other:
                if other is None:
                    yield piece
                    continue
            theirs.add(shared(piece))
        left.append(piece)
    for piece in left:
        with claim(piece) as other:
            if other is None:
                yield piece
            else:
                waiting[piece] = other
    for piece, other in waiting.items():
        log.info("%s: %s; waiting for it", piece, other)
    for piece in waiting:
        with claim(piece, wait=True):
            yield piece


@dataclasses.dataclass(frozen=True)
class Dataset:
    task: Task
    split: str  # name, or a file
    examples: Sequence[Example]  # in file order
    rules: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # override the training's, see `families.with_rules`

    @functools.cached_property
    def digest(self) -> str:
        return examples_digest(self.examples)

    def family(self, model: Trained) -> Family:
        return with_rules(self.task.family.as_trained(model.record), self.rules)


def leave_out_outdated(
    table: ResultsTable, names: Sequence[str], checkpoints: Sequence[Named], datasets: Sequence[Dataset]
) -> None:
    """Drops outdated rows: errors of names that now resolve, and metrics of replaced weights or of other data of a split.

    Rows of deleted checkpoints stay, since a run keeps only its last few, and those of other working directories.
    OutputError if one of these is of another model by the name of ours.
    """
    prefixes = {checkpoint.prefix for checkpoint in checkpoints}
    unresolved = {*names, *map(os.path.normpath, names)} - prefixes
    digest = functools.lru_cache(maxsize=None)(trained.digest)

    def has_changed(row: Row) -> bool:
        return digest(row.checkpoint) not in (None, row.settings.get("checkpoint_sha256"))

    for row in table.rows:
        if row.checkpoint in prefixes and not table.is_from_here(row) and not row.error and has_changed(row):
            problem = f"{row.checkpoint} has other weights than the row of that name from {table.directory(row)}"
            raise OutputError(f"{table.path}: {problem}; give the absolute path of yours, or another --output_dir")
    data = {(dataset.task.name, dataset.split): dataset.digest for dataset in datasets}

    def of_other_data(row: Row) -> bool:
        measured = row.settings.get("data_sha256")  # unknown of rows that Beam measured
        return row.error is None and measured is not None and data.get((row.task, row.split), measured) != measured

    def outdated(row: Row) -> bool:
        return table.is_from_here(row) and (row.checkpoint in unresolved if row.error else has_changed(row))

    dropped = table.drop(outdated)
    if dropped:
        log.info("outdated rows of earlier jobs removed from the table: %d", dropped)
    dropped = table.drop(of_other_data)
    if dropped:
        text = "rows of earlier jobs removed from the table, since they were measured on other data of these splits: %d"
        log.warning(text, dropped)


def _warn_of_rules(models: Sequence[Trained]) -> None:
    """Warns where one checkpoint of a folder has a decision rule, which makes its row another."""
    folders = [os.path.dirname(model.prefix) for model in models]
    for model, folder in zip(models, folders):
        if DECISION in model.record and folders.count(folder) > 1:
            log.warning("%s follows its %s; the other checkpoints of its folder have none", model.prefix, run_layout.DECISION)


def evaluate(
    checkpoints: Sequence[Named],
    datasets: Sequence[Dataset],
    table: ResultsTable,
    overrides: ModelOverrides,
    inference: InferenceOptions,
    *,
    load: Callable[[str, ModelOverrides], Trained] = loading.load,
) -> list[Row]:
    """Fills the table and returns the error rows; existing rows stay, an unusable checkpoint becomes an error row.

    Checkpoints of one architecture follow each other, so each graph is built once. Concurrent jobs on one table divide the
    rows; each ends when all of its rows are there. Errors do not replace valid metrics in the table.
    """
    usable: list[tuple[Named, Trained]] = []
    unusable: list[tuple[Named, BertError]] = []
    for checkpoint in checkpoints:
        try:
            if checkpoint.problem:
                raise CheckpointError(checkpoint.problem)
            usable.append((checkpoint, load(checkpoint.prefix, overrides)))
        except FlagError:  # the job's error, not a checkpoint's: before there is any row
            raise
        except BertError as error:
            unusable.append((checkpoint, error))
    _warn_of_rules([model for _, model in usable])
    before = {row.key: row for row in table.rows}
    rows = [put(table, _failed(checkpoint, dataset, error)) for checkpoint, error in unusable for dataset in datasets]
    left = [due for due in _due(usable, datasets, inference) if not _is_there(due, before)]
    features = _Features()
    ours = divided(left, lambda due, **how: table.claiming(due.key, **how), lambda due: due.checkpoint)
    with contextlib.closing(inference.engine()) as computes, contextlib.closing(ours):
        for due in ours:
            stored = table.stored(due.key)
            if stored is not None and _is_settled(due, stored, before):
                log.info("%s: already done by another job", due)
                rows.append(stored)
            else:
                rows.append(put(table, _row(due, computes, features)))
    return [row for row in rows if row.error]


@dataclasses.dataclass(frozen=True, eq=False)
class _Due:
    """A row to measure, and the settings that determine its metrics."""

    checkpoint: Named
    model: Trained
    dataset: Dataset
    settings: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.checkpoint.prefix}, {self.dataset.task.name} {self.dataset.split}"

    @property
    def key(self) -> Key:
        return self.checkpoint.prefix, self.dataset.task.name, self.dataset.split


def _due(usable: Sequence[tuple[Named, Trained]], datasets: Sequence[Dataset], inference: InferenceOptions) -> Iterator[_Due]:
    """Yields due rows, grouped by architecture."""
    first = {model.architecture: index for index, (_, model) in reversed(list(enumerate(usable)))}
    decided = {"eval_batch_size": inference.batch_size, "precision": inference.precision}
    for checkpoint, model in sorted(usable, key=lambda pair: first[pair[1].architecture]):
        for dataset in datasets:
            rules = rules_of(dataset.family(model))
            of_dataset = {"data_sha256": dataset.digest, **({"rules": rules} if rules else {})}
            yield _Due(checkpoint, model, dataset, {**model.settings, **decided, **of_dataset})


def _is_there(due: _Due, before: Mapping[Key, Row]) -> bool:
    is_there = due.key in before and before[due.key].is_of(due.settings)
    if is_there:
        log.info("%s: already in the table", due)
    return is_there


def _is_settled(due: _Due, stored: Row, before: Mapping[Key, Row]) -> bool:
    """Whether another job has measured the row since this one began, or found it unmeasurable."""
    failed = stored.error is not None and stored.settings.items() <= due.settings.items() and stored != before.get(due.key)
    return failed or stored.is_of(due.settings)


class _Features:
    """Features of each dataset, built once for all models with the same text preparation."""

    def __init__(self) -> None:
        self._built: dict[tuple[object, ...], Features] = {}

    def features_of(self, dataset: Dataset, model: Trained) -> Features:
        family = dataset.family(model)
        reading = (model.vocabulary.fingerprint, model.lower_case, model.limits)
        key = (documents.to_json(family.record(), sort_keys=True), dataset.digest, *reading)
        if key not in self._built:
            self._built[key] = family.features(dataset.examples, model.tokenizer, model.limits)
        return self._built[key]


def _row(due: _Due, computes: Engine, features: _Features) -> Row:
    checkpoint, model, dataset = due.checkpoint, due.model, due.dataset
    family = dataset.family(model)
    model.warn_if_fitted_on(lambda: dataset.digest, f"{checkpoint.prefix}, {dataset.task.name} {dataset.split}")
    try:
        model.refuse(family)
        step = computes.load(model)
        read = features.features_of(dataset, model)
        start = time.perf_counter()
        outputs = computes.outputs(read)
        seconds = time.perf_counter() - start
    except BertError as error:
        return _failed(checkpoint, dataset, error)
    measured = family.evaluation(family.predictions(outputs, read, dataset.examples), dataset.examples)
    row = Row(checkpoint.prefix, step, dataset.task.name, dataset.split, settings=due.settings)
    return row.measured(measured, seconds)


def _failed(checkpoint: Named, dataset: Dataset, error: BertError) -> Row:
    problem = " ".join(str(error).split())  # preflight reports one problem per line
    digest = trained.digest(checkpoint.prefix)
    settings = {**({"checkpoint_sha256": digest} if digest else {}), "data_sha256": dataset.digest}
    return Row(checkpoint.prefix, checkpoint.step, dataset.task.name, dataset.split, error=problem, settings=settings)


def put(table: ResultsTable, row: Row) -> Row:
    """Adds and logs a row, and returns it; an error does not replace valid metrics."""
    remark = "" if table.put(row) else "; its earlier row stays"
    if row.error:
        log.error("%s, %s %s: %s%s", row.checkpoint, row.task, row.split, row.error, remark)
    else:
        values = ", ".join(f"{name} = {value:.4f}" for name, value in {**row.metrics, "loss": row.loss}.items())
        log.info("%s, %s %s: %s (%.1f examples/s)", row.checkpoint, row.task, row.split, values, row.examples_per_second)
    if row.warning:
        log.warning("%s, %s %s: %s", row.checkpoint, row.task, row.split, row.warning)
    return row
