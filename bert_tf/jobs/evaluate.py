"""Evaluates many checkpoints on labelled examples, from settings to a table."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.batch import checkpoints, evaluation, own_data, results_table, trained
from bert_tf.batch.checkpoints import Named
from bert_tf.batch.evaluation import Dataset
from bert_tf.batch.job import EvaluateJob, Given, TaskEntry
from bert_tf.batch.results_table import ResultsTable
from bert_tf.batch.rows import Row
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.cluster import paths
from bert_tf.errors import CheckpointError, DataError, FlagError, OutputError
from bert_tf.estimator import run_folder
from bert_tf.head_spec import PRETRAINING, REGRESSION
from bert_tf.jobs import batch_machine, beam_job, evaluate_on_beam
from bert_tf.jobs.beam_job import Beam
from bert_tf.jobs.encode import find_encoder
from bert_tf.jobs.evaluate_config import DEFAULT_CHECKPOINT
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.jobs.sources import SAMPLE_NOTE, checkpoint_of, find_data
from bert_tf.log_form import log
from bert_tf.tasks.base import DEV, Task
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.families import with_rules
from bert_tf.tasks.registry import canonical_name, get_task
from bert_tf.tasks.similarity.family import SimilarityFamily
from bert_tf.tasks.similarity.task import zero_shot
from bert_tf.tasks.tables import usable


@dataclasses.dataclass(frozen=True)
class Evaluated:
    table: Path  # path
    rows: Sequence[Row]  # includes those of earlier jobs
    failed: Sequence[Row]  # with reasons; absent from the table if older metrics hold


def evaluate(
    job: EvaluateJob, machine: MachineSettings, *, environment: Mapping[str, str], beam: Beam | None = None
) -> Evaluated:
    """Evaluates checkpoints and writes the table; a failing checkpoint becomes a row, other errors raise BertError."""
    if beam is not None:
        return _evaluate_on_beam(job, machine, beam)
    with run_folder.writing_where_a_run_is([job.output_dir]):
        named = checkpoints.named(_names(job, environment))
        datasets = [dataset for entry in job.tasks for dataset in _datasets(entry, named, job, environment)]
        order = [(checkpoint.prefix, dataset.task.name, dataset.split) for checkpoint in named for dataset in datasets]
        table = ResultsTable(job.output_dir, order)
        evaluation.leave_out_outdated(table, job.checkpoints, named)
        load = _loader(zero_shot=job.zero_shot)
        inference = batch_machine.inference(machine, job.eval_batch_size, environment=environment)
        log.info("%d checkpoints by %s", len(named), ", ".join(f"{data.task.name} {data.split}" for data in datasets))
        failed = evaluation.evaluate(named, datasets, table, job.model, inference, load=load)
        table.write()
    return Evaluated(Path(job.output_dir) / results_table.TSV_FILE, table.rows, failed)


def _evaluate_on_beam(job: EvaluateJob, machine: MachineSettings, beam: Beam) -> Evaluated:
    """For files too large for one machine; checkpoints may be remote."""
    beam_job.refuse_missing()
    if job.zero_shot or paths.has_scheme(job.output_dir):
        raise FlagError("--beam evaluates trained models, and the table is on this machine: name a local --output_dir")
    table = ResultsTable(job.output_dir, [])
    failed = []
    for entry in job.tasks:
        if entry.file is None:
            raise FlagError(f"--beam: name files in a job file: tasks: {{name: {entry.name}, file: FILE}}")
        for name in job.checkpoints:
            task = _task(entry, checkpoints.named([beam_job.fetched_checkpoint(name)]))
            found = evaluate_on_beam.row(job, name, task, entry, machine, beam)
            evaluation.put(table, found)
            failed += [found] * bool(found.error)
    table.write()
    return Evaluated(Path(job.output_dir) / results_table.TSV_FILE, table.rows, failed)


def _names(job: EvaluateJob, environment: Mapping[str, str]) -> list[str]:
    """Checkpoint names; includes Hugging Face folders and the default if a pretrained model suffices."""
    if not job.zero_shot:
        return list(job.checkpoints)
    return [
        find_encoder(None, job.model, environment=environment).prefix
        if name == DEFAULT_CHECKPOINT
        else str(checkpoint_of(name, environment=environment))
        if huggingface.is_huggingface_folder(name)
        else name
        for name in job.checkpoints
    ]


def _load_for_vectors(prefix: str, given: Given) -> Trained:
    model = trained.load_encoder(prefix, given)
    return dataclasses.replace(model, given_head=SimilarityFamily().head)


def _loader(*, zero_shot: bool) -> Callable[[str, Given], Trained]:
    if zero_shot:
        return _load_for_vectors
    return trained.load


def _datasets(entry: TaskEntry, named: Sequence[Named], job: EvaluateJob, environment: Mapping[str, str]) -> Iterator[Dataset]:
    """Yields the data sets of an entry; BertError if a task, file or label is missing."""
    base = _scored(entry) if job.zero_shot else _task(entry, named)
    task = zero_shot(base) if job.zero_shot else base
    rules = job.rules.given()
    with_rules(task.family, rules)
    if entry.file is not None:
        split = entry.split or task.splits("", DEV)[0]
        examples = usable(lambda report: task.stream(str(entry.file), split, report), entry.file, skip=False)
        yield _labelled(Dataset(task, entry.file, examples, rules), entry.file)
        return
    data = find_data(base, entry.data_dir, environment=environment)
    log.info("%s: data from %s (%s)", task.name, data.folder, data.origin)
    if data.is_sample:
        log.warning("this is the %s", SAMPLE_NOTE)
    for split in [entry.split] if entry.split else task.splits(data.folder, DEV):
        yield _labelled(Dataset(task, split, task.examples(data.folder, split), rules), task.file(data.folder, split))


def _labelled(dataset: Dataset, path: object) -> Dataset:
    if not dataset.examples:
        raise DataError("no examples below the header line", path)
    if dataset.examples[0].label is None:
        raise DataError(f"split {dataset.split} has no labels to evaluate by", path)
    return dataset


def _scored(entry: TaskEntry) -> Task:
    """Task of an entry; with scores if the file is the user's own."""
    if canonical_name(entry.name) != CUSTOM or entry.file is None:
        return _task(entry, ())
    return own_data.task({"kind": REGRESSION, "labels": ()}, entry.columns, dev_file=entry.file)


def _task(entry: TaskEntry, named: Sequence[Named]) -> Task:
    columns = entry.columns.given()
    if canonical_name(entry.name) == CUSTOM:
        if entry.file is None:
            raise FlagError(f"tasks: {CUSTOM} needs a file: {{name: {CUSTOM}, file: dev.tsv}} in a job file")
        record = _first_record(named)
        if not record:
            _refuse_missing(named[0])
        return own_data.task(record, entry.columns, dev_file=entry.file)
    if columns:
        raise FlagError(f"tasks: {next(iter(columns))} belongs to the task {CUSTOM}; {entry.name} has columns of its own")
    task = get_task(entry.name)
    if task.family.head.kind == PRETRAINING:
        raise FlagError(
            f"{task.name}: held-out text is evaluated by python -m bert_tf pretrain --do_eval, with the flags of the run"
        )
    return task


def _refuse_missing(checkpoint: Named) -> None:
    """Reports a missing checkpoint as such, instead of its missing record."""
    if checkpoint.problem:
        raise CheckpointError(checkpoint.problem)
    CheckpointReader(checkpoint.prefix)


def _first_record(named: Sequence[Named]) -> Mapping[str, Any]:
    """Training record of the first checkpoint that has one; a damaged one is reported in its row."""
    for checkpoint in named:
        with contextlib.suppress(OutputError):
            if record := run_folder.trained(Path(checkpoint.prefix).parent):
                return record
    return {}
