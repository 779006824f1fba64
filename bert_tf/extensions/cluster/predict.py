"""Predicts files in a pipeline of Apache Beam."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bert_tf.batch.file_pairs import FilePair, output_form
from bert_tf.errors import FlagError
from bert_tf.extensions.cluster import beam_job
from bert_tf.library.keywords import Beam
from bert_tf.operations.predict import PredictSettings, opened

if TYPE_CHECKING:  # TensorFlow is imported when a worker has begun
    from bert_tf.batch.session import Predictor


def run(settings: PredictSettings, by: Beam) -> tuple[str, ...]:
    if settings.keep_columns:
        raise FlagError("--keep_columns: a pipeline of Beam does not read other columns; leave the flag out, or --beam")
    beam_job.refuse_missing()
    from bert_tf.extensions.cluster import beam  # imports Beam, like the next
    from bert_tf.extensions.cluster.beam import Transfer
    from bert_tf.extensions.cluster.shards import ShardForm

    if settings.average_outputs:
        raise FlagError("--average_outputs: a pipeline of Beam predicts with one checkpoint; leave the flag out, or --beam")
    settings = beam_job.absolute_model(dataclasses.replace(settings, files=beam_job.absolute_files(settings.files)))
    _, reads = opened(beam_job.fetched(settings))

    def transfer(pair: FilePair) -> Transfer:
        form = output_form(pair.output, pair.output_format)
        return Transfer(pair.input, pair.output, ShardForm(form, form.encode(reads.family.layout(form.form).header())))

    by_workers = dataclasses.replace(settings, machine=beam_job.dividing_cores(settings.machine, by))
    make = functools.partial(_worker, by_workers, by.begin)
    return tuple(beam.transfer([transfer(pair) for pair in settings.files], reads, make, by.arguments))


def _worker(settings: PredictSettings, begin: Callable[[], Mapping[str, str]]) -> Predictor:
    environment = begin()
    from bert_tf.batch.session import Predictor
    from bert_tf.training import batch_machine

    (model,), reads = opened(beam_job.fetched(settings))
    inference = batch_machine.inference(
        settings.machine, settings.predict_batch_size, environment=environment, checkpoints=[model.prefix]
    )
    predictor = Predictor(model, reads.family, inference)
    predictor.load_weights()
    return predictor
