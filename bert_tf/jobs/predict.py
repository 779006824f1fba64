"""Predictions for files of any size by one checkpoint, from settings to files."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf.batch import checkpoints, inputs, output_form, stream, trained
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.inputs import CHUNK, Inputs
from bert_tf.batch.job import FilePair, PredictJob
from bert_tf.batch.kept_columns import NAME as KEEP
from bert_tf.batch.prediction import Predictor
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.jobs import batch_machine, beam_job
from bert_tf.jobs.beam_job import Beam
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.log_form import log
from bert_tf.tasks.base import Family
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.families import rules_of
from bert_tf.tasks.registry import canonical_name, get_task


def predict(
    job: PredictJob, machine: MachineSettings, *, environment: Mapping[str, str], beam: Beam | None = None
) -> tuple[str, ...]:
    """Predicts all files of a job; returns the files, the shards of a pipeline."""
    job = dataclasses.replace(job, files=tuple(_completed(pair, job) for pair in job.files))
    if beam is not None:
        return _run_on_beam(job, machine, beam)
    _refuse_contradictions(job)
    with run_folder.writing_where_a_run_is(os.path.dirname(pair.output) for pair in job.files if pair.output != stream.PIPE):
        return tuple(pair.output for pair in _run(job, machine, environment))


def _run(job: PredictJob, machine: MachineSettings, environment: Mapping[str, str]) -> list[FilePair]:
    model, reads = _found(job)
    inference = batch_machine.inference(machine, job.predict_batch_size, environment=environment)
    with contextlib.closing(Predictor(model, reads.family, inference)) as predictor:
        predict_one = functools.partial(
            stream.predict, inputs=reads, predictor=predictor, settings=_deciding(job, inference, model, reads)
        )
        return stream.predict_each(job.files, predict_one, skip_empty=job.skip_bad_rows)


def _found(job: PredictJob) -> tuple[Trained, Inputs]:
    model = _model(job)
    reads = _inputs(job, model)
    labels = reads.family.labels
    learned = f"labels {', '.join(labels)}" if labels else reads.family.kind
    log.info("%s: %s; max length %d", model.prefix, learned, model.max_seq_length)
    return model, reads


def _completed(pair: FilePair, job: PredictJob) -> FilePair:
    source = stream.PIPE if pair.input == "/dev/stdin" else pair.input
    output = stream.PIPE if pair.output == "/dev/stdout" else pair.output
    return FilePair(source, output, pair.output_format or job.output_format)


def _refuse_contradictions(job: PredictJob) -> None:
    outputs = collections.Counter(os.path.realpath(pair.output) for pair in job.files)
    pipes = sum(pair.input == stream.PIPE for pair in job.files)
    for pair in job.files:
        output_form.of(pair.output, pair.output_format)  # says what is wrong with it
        if pair.output.endswith(os.sep) or os.path.isdir(pair.output):
            raise FlagError(f"{pair.output}: is a folder; name a file to write")
        run_folder.refuse_own_file(pair.output)
        if outputs[os.path.realpath(pair.output)] > 1:
            raise FlagError(f"{pair.output}: two inputs would be written there")
        if pair.input != stream.PIPE and os.path.realpath(pair.input) in outputs:
            raise FlagError(f"{pair.input}: is an input and an output")
    if pipes > 1:
        raise FlagError("the standard input can be read once")


def _run_on_beam(job: PredictJob, machine: MachineSettings, by: Beam) -> tuple[str, ...]:
    if job.keep_columns:
        raise FlagError(f"--{KEEP}: a pipeline of Beam does not read other columns; leave the flag out, or --beam")
    beam_job.refuse_missing()
    from bert_tf.cluster import beam  # as the next, it imports Beam
    from bert_tf.cluster.beam import Transfer
    from bert_tf.cluster.shards import ShardForm

    job = beam_job.absolute_model(dataclasses.replace(job, files=beam_job.absolute_files(job.files)))
    _, reads = _found(beam_job.fetched(job))

    def transfer(pair: FilePair) -> Transfer:
        form = output_form.of(pair.output, pair.output_format)
        return Transfer(pair.input, pair.output, ShardForm(form, form.encode(reads.family.layout(form.form).header())))

    make = functools.partial(_worker, job, beam_job.dividing_cores(machine, by), by.begin)
    return tuple(beam.transfer([transfer(pair) for pair in job.files], reads, make, by.arguments))


def _worker(job: PredictJob, machine: MachineSettings, begin: Callable[[], Mapping[str, str]]) -> Predictor:
    environment = begin()
    job = beam_job.fetched(job)
    model = _model(job)
    inference = batch_machine.inference(machine, job.predict_batch_size, environment=environment)
    return Predictor(model, _inputs(job, model).family, inference)


def _model(job: PredictJob) -> Trained:
    named = checkpoints.named([job.checkpoint])
    if len(named) > 1:
        raise CheckpointError(f"{job.checkpoint}: {len(named)} checkpoints, of which one can predict; name it")
    if named[0].problem:
        raise CheckpointError(named[0].problem)
    return trained.load(named[0].prefix, job.model, family=_family(job.task_name))


def _family(task_name: str | None) -> Family | None:
    """Family of a named task; None for the user's own data, which only a record describes."""
    return None if task_name is None or canonical_name(task_name) == CUSTOM else get_task(task_name).family


def _inputs(job: PredictJob, model: Trained) -> Inputs:
    return inputs.inputs(
        model,
        job.columns,
        task_name=job.task_name,
        skip_bad_rows=job.skip_bad_rows,
        keep_columns=job.keep_columns,
        rules=job.rules,
    )


def _deciding(job: PredictJob, inference: InferenceOptions, model: Trained, reads: Inputs) -> dict[str, Any]:
    """Everything but the input that affects the bytes of the output."""
    return {
        **model.settings,
        "task_name": reads.published.name if reads.published else None,
        **reads.family.record(),
        **rules_of(reads.family),
        "columns": dataclasses.asdict(job.columns),
        "skip_bad_rows": job.skip_bad_rows,
        **({"keep_columns": True} if job.keep_columns else {}),  # outputs of before are left alone
        "predict_batch_size": job.predict_batch_size,
        "precision": inference.precision,
        "chunk": CHUNK,
    }
