"""Evaluates checkpoints on files of any size: predicts in a Beam pipeline, computes metrics locally."""

from __future__ import annotations

import dataclasses
import functools
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.batch import checkpoints, loading
from bert_tf.batch.inputs import CHUNK, chunked
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError, DataError, FlagError
from bert_tf.extensions.cluster import beam_job
from bert_tf.extensions.evaluate import evaluation
from bert_tf.extensions.evaluate.command import EvaluateSettings, Table, task_of
from bert_tf.extensions.evaluate.results_table import TSV_FILE, ResultsTable, Row
from bert_tf.library.keywords import Beam
from bert_tf.runtime.precision import computed
from bert_tf.settings import changed
from bert_tf.tasks import tables
from bert_tf.tasks.base import DEV, Family, Task
from bert_tf.tasks.families import with_rules
from bert_tf.training import batch_machine
from bert_tf.training.settings import TENSORFLOW, MachineSettings


@dataclasses.dataclass(frozen=True)
class LabelledInputs:
    """Labelled input files, see `batch.inputs.Inputs`."""

    task: Task  # defines their layout
    split: str

    skip_bad_rows = False
    chunk_size = CHUNK
    numbers = None

    def chunks(
        self, source: str, *, patience_s: float | None = None, report: tables.Report | None = None
    ) -> Iterator[list[Any]]:
        return chunked(
            lambda source, report: self.task.stream(source, self.split, report),
            source,
            report=report or tables.refuse,
            patience_s=patience_s,
        )


@dataclasses.dataclass(frozen=True)
class Measured:
    """A checkpoint and its labelled files; pickled."""

    checkpoint: str
    task: Task
    file: str  # or a pattern
    given_split: str | None
    model: ModelOverrides
    rules: Mapping[str, Any]  # override decoding options of training
    batch_size: int | None  # rows; None chooses by length

    @property
    def split(self) -> str:
        return self.given_split or self.task.splits("", DEV)[0]

    def loaded(self) -> tuple[Trained, Family]:
        local = beam_job.fetched(self)
        model = loading.load(local.checkpoint, local.model)
        family = with_rules(self.task.family.as_trained(model.record), self.rules)
        model.refuse(family)
        return model, family


def run(settings: EvaluateSettings, by: Beam) -> Table:
    """For files too large for one machine; checkpoints may be remote."""
    beam_job.refuse_missing()
    for name in changed(settings.extensions):
        raise FlagError(f"--{name}: --beam evaluates trained models; leave it out")
    table = ResultsTable(settings.output_dir, [])
    failed = []
    for entry in settings.tasks:
        if entry.file is None:
            raise FlagError(f"--beam: name files in a job file: tasks: {{name: {entry.name}, file: FILE}}")
        for name in settings.checkpoints:
            task = task_of(entry, checkpoints.named([beam_job.fetched_checkpoint(name)]))
            measured = Measured(
                name, task, entry.file, entry.split, settings.model, settings.rules.given(), settings.eval_batch_size
            )
            made = row(measured, settings.output_dir, settings.machine, by)
            evaluation.put(table, made)
            failed += [made] * bool(made.error)
    table.write()
    return Table(table.rows, failed, Path(settings.output_dir) / TSV_FILE)


def row(measured: Measured, output_dir: str, machine: MachineSettings, by: Beam) -> Row:
    """Evaluates a checkpoint on files; the row has the reason if it fails. FlagError for Beam's own problems."""
    try:
        return _row(beam_job.absolute_model(measured), output_dir, beam_job.dividing_cores(machine, by), by)
    except FlagError:  # of the job, not of a checkpoint
        raise
    except BertError as error:
        return Row(measured.checkpoint, None, measured.task.name, measured.file, error=" ".join(str(error).split()))


def _row(measured: Measured, output_dir: str, machine: MachineSettings, by: Beam) -> Row:
    from bert_tf.checkpoints.reader import CheckpointReader
    from bert_tf.extensions.cluster import beam, gathering, shards, storage
    from bert_tf.extensions.cluster.beam import Transfer
    from bert_tf.extensions.cluster.gathering import GatheredForm
    from bert_tf.extensions.cluster.shards import ShardForm

    model, family = measured.loaded()
    prefix = storage.joined(beam_job.gathering_place(output_dir, by), f"parts-{uuid.uuid4().hex}")
    start = time.perf_counter()
    try:
        written = beam.transfer(
            [Transfer(beam_job.absolute(measured.file), prefix, ShardForm(GatheredForm()))],
            LabelledInputs(measured.task, measured.split),
            functools.partial(_worker, measured, machine, by.begin),
            by.arguments,
        )
        gathered = gathering.evaluation(_parts(written), family)
    finally:
        storage.delete(shards.shards_of(prefix).existing())
    if gathered is None:
        raise DataError("no examples below the header line", measured.file)
    seconds = time.perf_counter() - start
    reader = CheckpointReader(model.prefix)
    step = int(reader["global_step"]) if "global_step" in reader.shapes else None
    settings = {**model.settings, "eval_batch_size": measured.batch_size, **_computing(machine)}
    return Row(measured.checkpoint, step, measured.task.name, measured.file, settings=settings).measured(gathered, seconds)


def _computing(machine: MachineSettings) -> dict[str, Any]:
    if machine.engine == TENSORFLOW:
        return {"precision": computed(machine.precision)}
    return {"precision": machine.precision, "engine": machine.engine}


def _parts(written: Sequence[str]) -> Iterator[Any]:
    from bert_tf.extensions.cluster import gathering, storage

    for path in written:
        with storage.readable_errors(path), storage.open_file(path) as file:
            yield from gathering.parts_of(file)


def _worker(measured: Measured, machine: MachineSettings, begin: Callable[[], Mapping[str, str]]) -> Any:
    from bert_tf.extensions.cluster.gathering import Gatherer

    model, family = measured.loaded()
    inference = batch_machine.inference(machine, measured.batch_size, [model.prefix], environment=begin())
    gatherer = Gatherer(model, family, inference)
    gatherer.load_weights()
    return gatherer
