"""Encodes the texts of files with one encoder, from settings to files of vectors."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bert_tf import atomic, extras
from bert_tf.batch import inputs, stream, trained
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.job import FilePair, Given
from bert_tf.batch.trained import Trained
from bert_tf.cluster import paths
from bert_tf.errors import FlagError
from bert_tf.estimator import run_folder
from bert_tf.jobs import batch_machine, beam_job, encode_files, sources
from bert_tf.jobs.beam_job import Beam
from bert_tf.jobs.encode_config import EncodeConfig
from bert_tf.jobs.settings import ModelSettings
from bert_tf.log_form import log
from bert_tf.vectors import forms
from bert_tf.vectors.files import AnyForm, ArrayForm, JsonForm, PublishedForm
from bert_tf.vectors.forms import ARRAYS, FLOAT32, JSONL, NPY, PARQUET, PUBLISHED, VectorForm
from bert_tf.vectors.options import VectorOptions
from bert_tf.vectors.text_encoder import TextEncoder
from bert_tf.vectors.texts import TextInputs

_CHUNK_OF_TOKENS = 64  # texts that are computed together where each token has a vector: a thousand would fill the memory


def encode(config: EncodeConfig, *, environment: Mapping[str, str], beam: Beam | None = None) -> tuple[str, ...]:
    """Writes the vectors of each file; returns the files, the shards of a pipeline."""
    if beam is not None:
        return _run_on_beam(_completed(config), beam, environment)
    each = [_completed(dataclasses.replace(config, files=pair)) for pair in encode_files.pairs(config.files)]
    for one in each:
        _refuse_same(one.files)
        run_folder.refuse_own_file(one.files.output)
        _refuse_contradictions(one)
    config, files = each[0], [one.files for one in each]
    with run_folder.writing_where_a_run_is([os.path.dirname(config.files.output)]):
        model = find_encoder(config.checkpoint, config.model, environment=environment)
        form = _made(_form(config), config, model)
        inference = batch_machine.inference(config.machine, config.batch_size, environment=environment)
        with contextlib.closing(TextEncoder(model, inference, config.options)) as encoder:
            predict_one = functools.partial(
                stream.predict,
                inputs=_inputs(config),
                predictor=encoder,
                settings=_deciding(config, inference, model),
                form=form,
            )
            done = stream.predict_each(files, predict_one, skip_empty=config.skip_bad_rows)
            _say_what_was_cut(encoder, model)
    return tuple(pair.output for pair in done)


def _run_on_beam(config: EncodeConfig, by: Beam, environment: Mapping[str, str]) -> tuple[str, ...]:
    beam_job.refuse_missing()
    from bert_tf.cluster import beam  # as the next, it imports Beam
    from bert_tf.cluster.beam import Transfer
    from bert_tf.cluster.shards import ShardForm

    files = beam_job.absolute_files(_pairs_on_beam(config.files))
    config = beam_job.absolute_model(dataclasses.replace(config, files=files[0]))
    _refuse_contradictions(config)
    if _form(config).kind == NPY:
        raise FlagError(
            f"{config.files.output}: shards are in no order, and {NPY} has no ids; name it .npz, .parquet or .jsonl"
        )
    there = beam_job.fetched(config)
    form = ShardForm(_made(_form(config), config, find_encoder(there.checkpoint, there.model, environment=environment)))
    by_workers = dataclasses.replace(config, machine=beam_job.dividing_cores(config.machine, by))
    transfers = [Transfer(pair.input, pair.output, form) for pair in files]
    return tuple(beam.transfer(transfers, _inputs(config), functools.partial(_worker, by_workers, by.begin), by.arguments))


def _pairs_on_beam(files: FilePair) -> list[FilePair]:
    """One pair per file if each has its own output; otherwise a pattern has a single output."""
    into_folder = files.output.endswith("/") and not any(map(paths.has_scheme, (files.input, files.output)))
    return encode_files.pairs(files) if into_folder else [files]


def _worker(config: EncodeConfig, begin: Callable[[], Mapping[str, str]]) -> TextEncoder:
    environment = begin()
    config = beam_job.fetched(config)
    model = find_encoder(config.checkpoint, config.model, environment=environment)
    return TextEncoder(
        model, batch_machine.inference(config.machine, config.batch_size, environment=environment), config.options
    )


def _inputs(config: EncodeConfig) -> TextInputs:
    return TextInputs(config.columns, config.skip_bad_rows, _chunk(config.options))


def find_encoder(checkpoint: str | None, given: Given, *, environment: Mapping[str, str]) -> Trained:
    """Loads a checkpoint, run or Hugging Face folder, trained or not; else $BERT_BASE_DIR, else the default."""
    if checkpoint is not None:
        return trained.load_encoder(str(sources.checkpoint_of(checkpoint, environment=environment)), given)
    source = sources.find_model(ModelSettings(), environment=environment)
    files = {"bert_config_file": str(source.config), "vocab_file": str(source.vocabulary)}
    said = {name: value for name, value in dataclasses.asdict(given).items() if value is not None}
    return trained.load_encoder(source.checkpoint, Given(**{**files, **said}))


def _encoding(config: EncodeConfig, model: Trained) -> dict[str, Any]:
    return {"checkpoint": model.prefix, **model.settings, **dataclasses.asdict(config.options), "dtype": config.dtype}


def _completed(config: EncodeConfig) -> EncodeConfig:
    files = config.files
    source = stream.PIPE if files.input == "/dev/stdin" else files.input
    output = stream.PIPE if files.output == "/dev/stdout" else files.output
    options = config.options
    if forms.of(output, files.output_format).kind == PUBLISHED:
        options = dataclasses.replace(options, tokens=True)
    return dataclasses.replace(config, files=FilePair(source, output, files.output_format), options=options)


def _form(config: EncodeConfig) -> VectorForm:
    return forms.of(config.files.output, config.files.output_format)


def _refuse_same(files: FilePair) -> None:
    if files.input != stream.PIPE and os.path.realpath(files.input) == os.path.realpath(files.output):
        raise FlagError(f"{files.input}: is the input and the output")
    kind = forms.of(files.output, files.output_format).kind
    if kind in ARRAYS and (files.output == stream.PIPE or _is_written_into(files.output)):
        raise FlagError(f"--output={files.output}: {kind} begins or ends with its size, which a pipe cannot take; name a file")


def _refuse_contradictions(config: EncodeConfig) -> None:
    files, kind, options = config.files, _form(config).kind, config.options
    if kind not in ARRAYS and config.dtype != FLOAT32:
        raise FlagError(f"--dtype={config.dtype} is of .npy, .npz and .parquet; {kind} has decimal digits")
    if kind == NPY and options.tokens:
        raise FlagError(f"--tokens: {NPY} cannot say where a text begins; name the output .npz, .parquet or .jsonl")
    if kind == PUBLISHED and options.normalize:
        raise FlagError(f"--normalize: vectors of --output_format={PUBLISHED} are as the encoder computes them")
    if kind == PARQUET and importlib.util.find_spec("pyarrow") is None:
        raise FlagError(f"{files.output}: Parquet needs pyarrow: {extras.install('parquet')}, or name the output .npz")


def _is_written_into(output: str) -> bool:
    with atomic.readable_errors(Path(output)):
        return atomic.is_written_into(output)


def _made(found: VectorForm, config: EncodeConfig, model: Trained) -> AnyForm:
    options = config.options
    if found.kind == JSONL:
        return JsonForm(found.compressed)
    if found.kind == PUBLISHED:
        return PublishedForm(options.layers, found.compressed, numbered=config.columns.id_column is None)
    return ArrayForm(found.kind, config.dtype, options.width(model.config), _encoding(config, model))


def _chunk(options: VectorOptions) -> int:
    return _CHUNK_OF_TOKENS if options.tokens else inputs.CHUNK


def _deciding(config: EncodeConfig, inference: InferenceOptions, model: Trained) -> dict[str, Any]:
    """Everything but the input that affects the bytes of the output."""
    return {
        **_encoding(config, model),
        "columns": dataclasses.asdict(config.columns),
        "skip_bad_rows": config.skip_bad_rows,
        "batch_size": config.batch_size,
        "precision": inference.precision,
        "chunk": _chunk(config.options),
    }


def _say_what_was_cut(encoder: TextEncoder, model: Trained) -> None:
    if encoder.truncated:
        most = model.config.max_position_embeddings
        log.warning(
            "texts that lost what is beyond %d word pieces: %d; --max_seq_length takes up to %d",
            *(model.max_seq_length, encoder.truncated, most),
        )
