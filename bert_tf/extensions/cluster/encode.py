"""Encodes texts of files in a pipeline of Apache Beam."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bert_tf.errors import FlagError
from bert_tf.extensions.cluster import beam_job
from bert_tf.extensions.vectors.encode import EncodeSettings, form, inputs, opened, pairs
from bert_tf.extensions.vectors.files import NPY
from bert_tf.io import files
from bert_tf.library.keywords import Beam

if TYPE_CHECKING:  # TensorFlow is imported when a worker has begun
    from bert_tf.extensions.vectors.text_encoder import TextEncoder


def run(settings: EncodeSettings, by: Beam) -> tuple[str, ...]:
    from bert_tf.training import sources

    beam_job.refuse_missing()
    from bert_tf.extensions.cluster import beam  # imports Beam, like the next
    from bert_tf.extensions.cluster.beam import Transfer
    from bert_tf.extensions.cluster.shards import ShardForm

    into_folder = settings.output.endswith("/") and not any(map(files.has_scheme, (settings.input, settings.output)))
    file_pairs = beam_job.absolute_files(pairs(settings) if into_folder else [settings.files])  # a pattern has one output
    settings = beam_job.absolute_model(settings.of_file(file_pairs[0]))
    if settings.kind == NPY:
        raise FlagError(f"{settings.output}: shards are unordered, and {NPY} has no ids; name it .npz, .parquet or .jsonl")
    local = beam_job.fetched(settings)
    shard = ShardForm(form(settings, sources.find(local.checkpoint, local.model, environment=os.environ, needs_head=False)))
    transfers = [Transfer(pair.input, pair.output, shard) for pair in file_pairs]
    by_workers = dataclasses.replace(settings, machine=beam_job.dividing_cores(settings.machine, by))
    return tuple(beam.transfer(transfers, inputs(settings), functools.partial(_worker, by_workers, by.begin), by.arguments))


def _worker(settings: EncodeSettings, begin: Callable[[], Mapping[str, str]]) -> TextEncoder:
    begin()
    return opened(beam_job.fetched(settings))
