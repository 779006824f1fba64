"""The same prediction as an Apache Beam pipeline; all workers see the files and the checkpoint under the same names.

A file is read in one place and dealt out in the chunks that a local job would compute, so that the same examples are computed
together and the same bytes come out. Whoever computes a chunk writes it beside the output; the last step puts all together.
Each step may be done twice: what chunks were written to is deleted when the pipeline has ended.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import apache_beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from bert_tf import atomic
from bert_tf.batch import output_form, stream
from bert_tf.batch.job import FilePair
from bert_tf.batch.resumable import Assemble
from bert_tf.batch.stream import Computes, Form, Source
from bert_tf.errors import BertError, FlagError

_HERE = "DirectRunner"  # how the runners are called that compute where the command runs; without --runner it is one of them
_OWN_ERROR = re.compile(rf"{BertError.__module__}\.\w+: (.*?)(?: \[while running|$)", re.MULTILINE)


class Chunk(NamedTuple):
    """Some of the examples of a file."""

    output: str  # where the predictions of the file go
    form: Form  # of that file
    number: int
    examples: list[object]


class Part(NamedTuple):
    """Predictions of a chunk."""

    number: int
    path: str


def predict(
    files: Sequence[FilePair],
    inputs: Source,
    make_predictor: Callable[[], Computes],
    arguments: Sequence[str],
    *,
    form: Form | None = None,
) -> None:
    """Runs the pipeline to its end.

    Args:
      files: what to predict.
      inputs: how to read it.
      make_predictor: called once in each process of a worker.
      arguments: of Beam and its runner.
      form: of all outputs; None for those of their names.

    Raises:
      FlagError: Beam does not know an argument, or cannot use it.
      BertError: a file cannot be read or written, where the runner hands errors on.
    """
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # of errors it shows the traceback, several times
    options = _options(arguments)
    try:
        made = apache_beam.Pipeline(options=options)
    except ValueError as error:
        raise FlagError(f"--beam: {error}") from error
    if not _computes_here(options):
        logging.getLogger("apache_beam").setLevel(logging.WARNING)  # not all that goes wrong elsewhere comes back as an error
    put_together = functools.partial(_put_together, assemble=None if form is None else form.assemble)
    with _readable_errors(), made as pipeline:
        (
            pipeline
            | "files" >> apache_beam.Create(list(files))
            | "read" >> apache_beam.FlatMap(_chunks, inputs, form)
            | "deal out" >> apache_beam.Reshuffle()
            | "predict" >> apache_beam.ParDo(_Predict(make_predictor))
            | "collect" >> apache_beam.GroupByKey()
            | "put together" >> apache_beam.MapTuple(put_together)
        )
    for pair in files:
        shutil.rmtree(_folder(pair.output), ignore_errors=True)


def _options(arguments: Sequence[str]) -> PipelineOptions:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):  # its parser says all that it knows, and ends the process
            options = PipelineOptions(list(arguments))
            known, given = options.get_all_options(), options.get_all_options(retain_unknown_options=True)
    except SystemExit as error:
        if not error.code:  # --help
            raise
        raise FlagError(f"--beam: {said.getvalue().splitlines()[-1].partition('error: ')[2]}") from error
    unknown = sorted(given.keys() - known.keys())
    if unknown and _computes_here(options):  # elsewhere the server of the runner may know more
        raise FlagError(f"--beam: Apache Beam has no option --{unknown[0]}")
    return options


def _computes_here(options: PipelineOptions) -> bool:
    runner = options.get_all_options().get("runner")
    return runner is None or runner.endswith(_HERE)


@contextlib.contextmanager
def _readable_errors() -> Iterator[None]:
    """Beam hands on what a worker raises as a text in an error of its own."""
    try:
        yield
    except RuntimeError as error:
        found = _OWN_ERROR.search(str(error))
        if found is None:
            raise
        raise BertError(found[1]) from error


def _chunks(pair: FilePair, inputs: Source, form: Form | None) -> Iterator[Chunk]:
    form = form or output_form.of(pair.output, pair.output_format)
    for number, examples in enumerate(inputs.chunks(pair.input)):
        yield Chunk(pair.output, form, number, examples)


class _Predict(apache_beam.DoFn):
    """Computes chunks; what it writes of one that the runner computes twice is not used."""

    def __init__(self, make_predictor: Callable[[], Computes]) -> None:
        self._make = make_predictor
        self._shared = Shared()

    def setup(self) -> None:
        self._predictor = self._shared.acquire(self._make)

    def process(self, chunk: Chunk) -> Iterator[tuple[str, Part]]:
        path = _folder(chunk.output) / f"{chunk.number:08}-{uuid.uuid4().hex}"
        with atomic.replacing(path) as temporary:
            features = self._predictor.read(chunk.examples)
            temporary.write_bytes(self._predictor.lines(chunk.number, chunk.examples, features, chunk.form))
        yield chunk.output, Part(chunk.number, str(path))


def _put_together(output: str, parts: Iterable[Part], assemble: Assemble | None = None) -> None:
    with stream.opened(output, assemble) as file:
        for part in sorted(parts):
            file.write(Path(part.path).read_bytes())


def _folder(output: str) -> Path:
    return Path(f"{output}.parts")
