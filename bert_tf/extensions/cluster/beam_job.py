"""Shared code of jobs that run as Apache Beam pipelines; imports no Beam."""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bert_tf import extras
from bert_tf.batch.file_pairs import FilePair
from bert_tf.batch.job import ModelFiles
from bert_tf.errors import FlagError
from bert_tf.io.files import PIPE, has_scheme
from bert_tf.library.keywords import Beam
from bert_tf.settings import setting_names
from bert_tf.training.settings import MachineSettings, with_threads

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
