"""Files of any size as a Beam pipeline: read in slices and written in shards, through Beam's file systems.

Rows are grouped as in a local job, so that the same examples are computed together and the values are the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import apache_beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.shared import Shared

from bert_tf.batch.ahead import ahead
from bert_tf.batch.file_pairs import OutputForm
from bert_tf.batch.stream import Computes
from bert_tf.errors import BertError, DataError, FlagError, LostPeerError, UnreadTextError
from bert_tf.extensions.cluster import shards, slices, storage
from bert_tf.extensions.cluster.shards import ShardForm, Shards
from bert_tf.extensions.cluster.slices import Part, Whole
from bert_tf.io import documents
from bert_tf.io.log_form import log
from bert_tf.runtime import cgroup
from bert_tf.tasks import names, tables

_OF_SERVERS = ("job_endpoint", "flink_master", "spark_master_url")
_SERVER = re.compile(r"(?:\w+://)?(?P<host>[^\[\]/:,]+):(?P<port>\d{1,5})/?")
_PATIENCE_S = 10.0
_HERE = "DirectRunner"  # suffix of runners that compute locally; also the default

_LEFT_OUT, _WHOLE = "left out", "whole"
_SHOWN = 5  # rows that could not be used
_OWN_ERROR = re.compile(rf"{BertError.__module__}\.(\w+): (.*?)(?: \[while running|$)", re.MULTILINE)
_OF_NETWORKS = ("grpc", "requests", "urllib3", "httplib2")  # packages whose errors mean that a server does not answer
_BITS_OF_PLACES = 80  # in a file
_JSON_LINES = ShardForm(OutputForm(names.JSONL))


def pipeline_options(arguments: Sequence[str]) -> PipelineOptions:
    usage = io.StringIO()
    try:
        with contextlib.redirect_stderr(usage):  # its parser prints its usage and ends the process
            options = PipelineOptions(list(arguments))
            known, all_options = options.get_all_options(), options.get_all_options(retain_unknown_options=True)
    except SystemExit as error:
        if not error.code:  # --help
            raise
        raise FlagError(f"--beam: {usage.getvalue().splitlines()[-1].partition('error: ')[2]}") from error
    unknown = sorted(all_options.keys() - known.keys())
    if unknown and computes_here(options):  # a remote runner may know more options
        raise FlagError(f"--beam: Apache Beam has no option --{unknown[0]}")
    return options


def refuse_unreachable(options: PipelineOptions) -> None:
    """Raises FlagError if a named server does not answer; Beam would wait for minutes."""
    for name, value in options.get_all_options().items():
        match = _SERVER.fullmatch(str(value)) if name in _OF_SERVERS else None
        if match is None:
            continue
        try:
            socket.create_connection((match["host"], int(match["port"])), timeout=_PATIENCE_S).close()
        except OSError as error:
            raise FlagError(f"--beam: --{name}={value}: no answer: {error.strerror or error}") from error


def _runner(options: PipelineOptions) -> str:
    return options.get_all_options().get("runner") or _HERE


def computes_here(options: PipelineOptions) -> bool:
    return _runner(options).endswith(_HERE)


def threads(arguments: Sequence[str]) -> int | None:
    """Returns the compute threads of each worker process, None if the runner chooses the number of processes."""
    options = pipeline_options(arguments)
    direct = options.view_as(DirectOptions)
    if not computes_here(options) or direct.direct_running_mode != "multi_processing":
        return None
    cores = cgroup.granted_cpus()
    return max(1, cores // (direct.direct_num_workers or cores))


class Reads(Protocol):
    """How files are read, as `batch.inputs.Inputs`; must be picklable."""

    @property
    def chunk_size(self) -> int:
        """Examples that are computed together."""

    @property
    def skip_bad_rows(self) -> bool:
        """Whether unusable rows are skipped."""

    @property
    def numbers(self) -> str | None:
        """Pattern of ids that are line numbers; None if a column holds the ids."""

    def chunks(
        self, source: str, *, patience_s: float | None = None, report: tables.Report | None = None
    ) -> Iterator[list[Any]]:
        """See `batch.inputs.Inputs.chunks`."""


class Transfer(NamedTuple):
    """Inputs that become one output."""

    input: str  # path or pattern
    output: str  # base name of the shards
    form: ShardForm


class _Chunk(NamedTuple):
    """Examples computed together, from a file that cannot be split."""

    path: str
    number: int
    examples: list[Any]


def transfer(transfers: Sequence[Transfer], reads: Reads, make: Callable[[], Computes], arguments: Sequence[str]) -> list[str]:
    """Runs a pipeline and returns the shards; `make` is pickled and loads the model once per worker process."""
    options = _options(arguments)
    branches = [_Branch(request, storage.inputs(request.input), shards.shards_of(request.output)) for request in transfers]
    for branch in branches:
        shards.refuse_existing(branch.shards)
        shards.refuse_existing(branch.shards.left_out)
    with contextlib.ExitStack() as undo:
        for branch in branches:
            undo.callback(shards.delete_unfinished, branch.shards)
            undo.callback(shards.delete_unfinished, branch.shards.left_out)
        with _pipeline(options) as pipeline:
            shared = Shared()
            for number, branch in enumerate(branches):
                _add(pipeline, f"{number}", branch, reads, _Compute(reads, make, shared, branch))
        undo.pop_all()
    for branch in branches:
        _say_what_was_left_out(branch)
    return [path for branch in branches for path in branch.shards.existing()]


def run_each(work: Callable[[Any], Any], tasks: Sequence[Any], arguments: Sequence[str]) -> None:
    """Runs work on a pipeline's workers for each task, in any order, possibly twice; work and tasks are pickled."""
    options = _options(arguments)
    with _pipeline(options) as pipeline:
        dealt = pipeline | "tasks" >> apache_beam.Create(list(tasks)) | "deal out" >> apache_beam.Reshuffle()
        _ = dealt | "work" >> apache_beam.Map(work)


def _options(arguments: Sequence[str]) -> PipelineOptions:
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # it logs the traceback of an error several times
    options = pipeline_options(arguments)
    refuse_unreachable(options)
    FileSystems.set_options(options)
    return options


class _Branch(NamedTuple):
    """A transfer with its input files and output shards."""

    transfer: Transfer
    files: Sequence[storage.Stored]
    shards: Shards


@contextlib.contextmanager
def _pipeline(options: PipelineOptions) -> Iterator[apache_beam.Pipeline]:
    try:
        made = apache_beam.Pipeline(options=options)
    except ValueError as error:
        raise FlagError(f"--beam: {error}") from error
    with _said_in_one_line(), _readable_errors(options), made as pipeline:
        yield pipeline


@contextlib.contextmanager
def _said_in_one_line() -> Iterator[None]:
    """Shortens server messages, which Beam logs as they are: of a traceback, the line with the error."""
    logging.root.addFilter(_shorten)
    try:
        yield
    finally:
        logging.root.removeFilter(_shorten)


def _shorten(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    if "\n" in text.strip():
        match = _OWN_ERROR.search(text)
        record.msg, record.args = match[2] if match else text.strip().splitlines()[-1], ()
    return True


@contextlib.contextmanager
def _readable_errors(options: PipelineOptions) -> Iterator[None]:
    """Unwraps errors: Beam reports a worker's as text in its own error, an unreachable server as a library's error."""
    try:
        yield
    except BertError:
        raise
    except Exception as error:
        match = _OWN_ERROR.search(str(error))
        if match is not None:
            kind = UnreadTextError if match[1] == UnreadTextError.__name__ else BertError
            raise kind.__new__(kind, match[2]) from error  # the message is made already
        name = _runner(options)
        if isinstance(error, ValueError) and not computes_here(options):  # it checks its options late
            raise FlagError(f"--beam: {name}: {storage.reason(error)}") from error
        if any(map(_is_elsewhere, _chain(error))):
            kind = LostPeerError if any(map(_may_pass, _chain(error))) else BertError
            raise kind(f"--beam: {name}: cannot be reached, or it refuses: {storage.reason(error)}") from error
        raise


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_elsewhere(error: BaseException) -> bool:
    """Whether the operating system or a server reports it."""
    return isinstance(error, OSError) or _may_pass(error) or _package(error) == "google"


def _may_pass(error: BaseException) -> bool:
    """Whether the same command may succeed later."""
    return isinstance(error, (ConnectionError, TimeoutError, socket.gaierror)) or _package(error) in _OF_NETWORKS


def _package(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _add(pipeline: apache_beam.Pipeline, name: str, branch: _Branch, reads: Reads, compute: _Compute) -> None:
    looked: Any
    whole: Any
    computed: Any
    files = pipeline | f"{name} files" >> apache_beam.Create(list(branch.files))
    looked = files | f"{name} look" >> apache_beam.FlatMap(_look, reads).with_outputs(_WHOLE, main="slices")
    whole = looked[_WHOLE] | f"{name} read" >> apache_beam.FlatMap(_chunks, reads).with_outputs(_LEFT_OUT, main="chunks")
    computed = (
        (looked.slices, whole.chunks)
        | f"{name} all" >> apache_beam.Flatten()
        | f"{name} deal out" >> apache_beam.Reshuffle()
        | f"{name} compute" >> apache_beam.ParDo(compute).with_outputs(_LEFT_OUT, main="parts")
    )
    _ = computed.parts | f"{name} write" >> shards.write(branch.shards, branch.transfer.form)
    if reads.skip_bad_rows:
        _ = (
            (whole[_LEFT_OUT], computed[_LEFT_OUT])
            | f"{name} all left out" >> apache_beam.Flatten()
            | f"{name} write left out" >> shards.write(branch.shards.left_out, _JSON_LINES, may_be_none=True)
        )


def _look(stored: storage.Stored, reads: Reads) -> Iterator[Any]:
    """Yields the slices of a file whose rows are lines, else its path."""
    source = Whole(stored.path, storage.open_file)
    next(iter(reads.chunks(source, report=(lambda _: None) if reads.skip_bad_rows else tables.refuse)))
    if source.first_line_of_rows is None:
        yield TaggedOutput(_WHOLE, stored.path)
        return
    with storage.readable_errors(stored.path), storage.open_file(stored.path) as file:
        yield from slices.slices(file, stored.path, source.first_line_of_rows)


def _chunks(path: str, reads: Reads) -> Iterator[Any]:
    left_out: list[DataError] = []
    report = left_out.append if reads.skip_bad_rows else tables.refuse
    for number, examples in enumerate(reads.chunks(Whole(path, storage.open_file), report=report)):
        yield _Chunk(path, number, examples)
        yield from map(_left_out_line, left_out)
        left_out.clear()
    yield from map(_left_out_line, left_out)


def _left_out_line(problem: DataError) -> Any:
    line = documents.to_json({"problem": str(problem)}, ensure_ascii=False) + "\n"
    return TaggedOutput(_LEFT_OUT, line.encode(errors="backslashreplace"))  # names of files may hold any byte


@dataclasses.dataclass
class _Loaded:
    """A model that a worker's threads use in turn."""

    computes: Computes
    turn: Any = dataclasses.field(default_factory=threading.Lock)


class _Compute(apache_beam.DoFn):
    def __init__(self, reads: Reads, make: Callable[[], Computes], shared: Shared, branch: _Branch) -> None:
        self._reads, self._make, self._shared = reads, make, shared
        self._form = branch.transfer.form.form
        self._files = {stored.path: number for number, stored in enumerate(branch.files)}
        self._numbers = re.compile(reads.numbers) if reads.numbers and len(self._files) > 1 else None
        self._root = "".join(os.path.commonprefix([*self._files]).rpartition("/")[:2])

    def setup(self) -> None:
        """Loads the model once per process, however many bundles it computes at a time."""
        logger = logging.getLogger("apache_beam")
        logger.setLevel(max(logger.level, logging.WARNING))  # otherwise a worker logs what each thread does
        self._loaded = self._shared.acquire(lambda: _Loaded(self._make()))

    def process(self, piece: Any) -> Iterator[Any]:
        left_out: list[DataError] = []
        chunks: Iterable[list[Any]]
        if isinstance(piece, _Chunk):
            in_file, chunks = piece.number, [piece.examples]
        else:
            report = left_out.append if self._reads.skip_bad_rows else tables.refuse
            part_of_file = Part(piece, storage.open_file, block=self._reads.chunk_size)
            in_file, chunks = piece.start * slices.MOST_PARTS, self._reads.chunks(part_of_file, report=report)
        first = (self._files[piece.path] << _BITS_OF_PLACES) + in_file + 1  # parts are sorted by number; 0 is a header
        computes = self._loaded.computes
        named = ([self._with_file(piece.path, example) for example in examples] for examples in filter(None, chunks))
        read = ahead((examples, computes.read(examples)) for examples in named)
        for number, (examples, features) in enumerate(read, first):
            with self._loaded.turn:
                part = computes.lines(number, examples, features, self._form)
            yield part
        yield from map(_left_out_line, left_out)

    def _with_file(self, path: str, example: Any) -> Any:
        """If there are several files, an id that is a line number gets the file as a prefix."""
        if self._numbers is None or not self._numbers.fullmatch(example.guid):
            return example
        return dataclasses.replace(example, guid=f"{path.removeprefix(self._root)}:{example.guid}")


def _say_what_was_left_out(branch: _Branch) -> None:
    """Logs the number of skipped rows and the first few problems."""
    count = 0
    for path in branch.shards.left_out.existing():
        with storage.readable_errors(path), storage.open_file(path) as file:
            for line in file:
                count += 1
                if count <= _SHOWN:
                    log.warning("left out: %s", documents.json_value(line.decode())["problem"])
    if count:
        pattern = branch.shards.left_out.pattern
        log.warning("%s: rows left out, since they cannot be used: %d; all are in %s", branch.transfer.input, count, pattern)
