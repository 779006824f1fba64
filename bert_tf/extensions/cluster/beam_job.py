"""Prediction and encoding as Apache Beam pipelines, and what such jobs share; imports no Beam."""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bert_tf import extras
from bert_tf.batch.file_pairs import FilePair, output_form
from bert_tf.batch.job import ModelFiles
from bert_tf.errors import FlagError
from bert_tf.io.files import PIPE, has_scheme
from bert_tf.library.keywords import Beam
from bert_tf.settings import setting_names
from bert_tf.training.settings import MachineSettings, with_threads

if TYPE_CHECKING:
    from bert_tf.batch.session import Predictor
    from bert_tf.extensions.vectors.encode import EncodeSettings
    from bert_tf.extensions.vectors.text_encoder import TextEncoder
    from bert_tf.operations.predict import PredictSettings

_FILES = setting_names(ModelFiles)

T = TypeVar("T")  # a dataclass with `checkpoint` and `model`


def refuse_missing() -> None:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it warns of its parts that are not installed
    try:
        import apache_beam  # noqa: F401
    except ImportError as error:
        raise FlagError(f"--beam needs Apache Beam: {extras.install('beam')}") from error
    finally:
        logging.disable(before)


def absolute(path: str) -> str:
    """Returns a path that means the same to workers; a trailing slash is kept."""
    return path if has_scheme(path) else os.path.abspath(path) + "/" * path.endswith("/")


def absolute_files(files: Sequence[FilePair]) -> tuple[FilePair, ...]:
    """Makes paths absolute for workers; FlagError for a pipe or two inputs with the same output."""
    if any(PIPE in (pair.input, pair.output) for pair in files):
        raise FlagError("--beam: workers cannot read or write the pipes of this process; name files")
    outputs = collections.Counter(absolute(pair.output) for pair in files)
    for pair in files:
        if pair.output.endswith("/"):
            raise FlagError(f"{pair.output}: is a folder; name a file, after which shards are named")
        if outputs[absolute(pair.output)] > 1:
            raise FlagError(f"{pair.output}: two inputs would be written there")
    return tuple(dataclasses.replace(pair, input=absolute(pair.input), output=absolute(pair.output)) for pair in files)


def absolute_model(job: T) -> T:
    return _with_model(job, absolute, absolute)


def fetched(job: T) -> T:
    """Copies the job's model to this machine if it is on another file system."""
    from bert_tf.extensions.cluster import storage as copies  # imports Beam

    return _with_model(job, copies.checkpoint, copies.file)


def fetched_checkpoint(name: str) -> str:
    from bert_tf.extensions.cluster import storage as copies  # imports Beam

    return copies.checkpoint(name)


def _with_model(job: T, of_checkpoint: Callable[[str], str], of_file: Callable[[str], str]) -> T:
    made: Any = job
    files: dict[str, Any] = {name: of_file(path) for name in _FILES if (path := getattr(made.model, name)) is not None}
    checkpoint = None if made.checkpoint is None else of_checkpoint(made.checkpoint)
    sent: T = dataclasses.replace(made, checkpoint=checkpoint, model=dataclasses.replace(made.model, **files))
    return sent


def gathering_place(output_dir: str, by: Beam) -> str:
    """Returns a folder that workers can write to; FlagError if there is none because workers run elsewhere."""
    from bert_tf.extensions.cluster import beam  # imports Beam

    options = beam.pipeline_options(by.arguments)
    folder = options.get_all_options().get("temp_location")
    if folder is None and not beam.computes_here(options):
        raise FlagError("--beam: add --temp_location=FOLDER after --, where workers write their results")
    return absolute(folder or output_dir)


def dividing_cores(machine: MachineSettings, by: Beam) -> MachineSettings:
    """Settings of a worker process: workers of one machine share its cores unless threads are set."""
    from bert_tf.extensions.cluster import beam  # imports Beam

    return with_threads(machine, beam.threads(by.arguments))


def run_each(job: tuple[Callable[[int], object], Sequence[int]], by: Beam) -> None:
    """Calls a function with each number, by workers."""
    refuse_missing()
    from bert_tf.extensions.cluster import beam  # imports Beam

    beam.run_each(*job, by.arguments)


def predict(settings: PredictSettings, by: Beam) -> tuple[str, ...]:
    if settings.keep_columns:
        raise FlagError("--keep_columns: a pipeline of Beam does not read other columns; leave the flag out, or --beam")
    if settings.average_outputs:
        raise FlagError("--average_outputs: a pipeline of Beam predicts with one checkpoint; leave the flag out, or --beam")
    refuse_missing()
    from bert_tf.extensions.cluster import beam  # imports Beam, like the next
    from bert_tf.extensions.cluster.beam import Transfer
    from bert_tf.extensions.cluster.shards import ShardForm
    from bert_tf.operations.predict import opened

    settings = absolute_model(dataclasses.replace(settings, files=absolute_files(settings.files)))
    _, reads = opened(fetched(settings))

    def transfer(pair: FilePair) -> Transfer:
        form = output_form(pair.output, pair.output_format)
        return Transfer(pair.input, pair.output, ShardForm(form, form.encode(reads.family.layout(form.form).header())))

    by_workers = dataclasses.replace(settings, machine=dividing_cores(settings.machine, by))
    make = functools.partial(_predictor, by_workers, by.begin)
    return tuple(beam.transfer([transfer(pair) for pair in settings.files], reads, make, by.arguments))


def _predictor(settings: PredictSettings, begin: Callable[[], Mapping[str, str]]) -> Predictor:
    environment = begin()
    from bert_tf.batch.session import Predictor
    from bert_tf.operations.predict import opened
    from bert_tf.training import batch_machine

    (model,), reads = opened(fetched(settings))
    inference = batch_machine.inference(
        settings.machine, settings.predict_batch_size, environment=environment, checkpoints=[model.prefix]
    )
    predictor = Predictor(model, reads.family, inference)
    predictor.load_weights()
    return predictor


def encode(settings: EncodeSettings, by: Beam) -> tuple[str, ...]:
    refuse_missing()
    from bert_tf.extensions.cluster import beam  # imports Beam, like the next
    from bert_tf.extensions.cluster.beam import Transfer
    from bert_tf.extensions.cluster.shards import ShardForm
    from bert_tf.extensions.vectors import encode
    from bert_tf.extensions.vectors.files import NPY
    from bert_tf.training import sources

    into_folder = settings.output.endswith("/") and not any(map(has_scheme, (settings.input, settings.output)))
    file_pairs = absolute_files(encode.pairs(settings) if into_folder else [settings.files])  # a pattern has one output
    settings = absolute_model(settings.of_file(file_pairs[0]))
    if settings.kind == NPY:
        raise FlagError(f"{settings.output}: shards are unordered, and {NPY} has no ids; name it .npz, .parquet or .jsonl")
    local = fetched(settings)
    model = sources.find(local.checkpoint, local.model, environment=os.environ, needs_head=False)
    transfers = [Transfer(pair.input, pair.output, ShardForm(encode.form(settings, model))) for pair in file_pairs]
    by_workers = dataclasses.replace(settings, machine=dividing_cores(settings.machine, by))
    make = functools.partial(_encoder, by_workers, by.begin)
    return tuple(beam.transfer(transfers, encode.inputs(settings), make, by.arguments))


def _encoder(settings: EncodeSettings, begin: Callable[[], Mapping[str, str]]) -> TextEncoder:
    begin()
    from bert_tf.extensions.vectors.encode import opened

    return opened(fetched(settings))
