"""Model outputs as columns of Spark data frames, from settings."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import io
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extras
from bert_tf.batch import checkpoints, inputs, trained
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.job import Columns, Given, Rules
from bert_tf.batch.trained import Trained
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.jobs import batch_machine, encode
from bert_tf.jobs.machine_settings import MachineSettings, with_threads
from bert_tf.tasks.base import Family
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.vectors.options import VectorOptions
from bert_tf.vectors.text_encoder import TextEncoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bert_tf.cluster.spark import Column
    from bert_tf.cluster.values import Parts, Predictions, TextVectors

_NOT_READ = ("id", "label")  # of a frame whose columns are not named
_NEEDS = f"Spark needs its packages here and on the executors: {extras.install('spark')}"


@dataclasses.dataclass(frozen=True)
class FrameJob:
    """A column to compute."""

    output: str  # column name
    columns: Mapping[str, str]  # frame's names of text_a, text_b, question; else the same
    model: Given  # overrides of recorded settings
    rules: Rules  # override decoding options of training
    machine: MachineSettings
    batch_size: int | None  # rows; None chooses by length
    skip_bad_rows: bool  # bad rows get no value instead of stopping the job
    begin: Callable[[], Mapping[str, str]]  # start-up of an executor, returns environment; pickled


def predict(frame: DataFrame, checkpoint: str, job: FrameJob) -> DataFrame:
    refuse_missing()
    from bert_tf.cluster import spark, values

    family, place, job = _prepared(checkpoint, frame.sparkSession, job)
    column = _column(frame, job, values.type_of(family.kind), functools.partial(_predictions, place, job))
    return spark.with_column(frame, column)


def evaluate(frame: DataFrame, checkpoint: str, job: FrameJob) -> Evaluation:
    """Evaluates on rows with a column `label`; collects labels and predictions of all rows on the driver."""
    refuse_missing()
    from bert_tf.cluster import gathering, spark, values

    family, place, job = _prepared(checkpoint, frame.sparkSession, job)
    column = _column(frame, job, values.Parts.type, functools.partial(_parts, place, job), unread=("id",))
    made = spark.collected(spark.with_column(frame, column).select(job.output).dropna())
    parts = (part for row in made for part in gathering.parts_of(io.BytesIO(row[0])))
    found = gathering.evaluation(parts, family)
    if found is None:
        raise DataError("nothing to evaluate by", "frame")
    return found


def encode_texts(
    frame: DataFrame, checkpoint: str | None, job: FrameJob, options: VectorOptions, *, environment: Mapping[str, str]
) -> DataFrame:
    """Adds a column of vectors; without a checkpoint the default encoder is used."""
    refuse_missing()
    from bert_tf.cluster import spark, values

    if options.tokens:
        raise FlagError("tokens=True: a column holds a vector of each text; encode_file writes those of tokens")
    model = encode.find_encoder(_local(checkpoint), job.model, environment=environment)
    place, job = _sent(model, frame.sparkSession, job)
    column = _column(frame, job, values.TextVectors.type, functools.partial(_vectors, place, job, options))
    return spark.with_column(frame, column)


def refuse_missing() -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise FlagError(f"{_NEEDS} ({error})") from error


def _column(
    frame: DataFrame, job: FrameJob, kind: Any, make: Callable[[], Any], *, unread: Sequence[str] = _NOT_READ
) -> Column:
    from bert_tf.cluster.spark import Column

    named = job.columns or {name: name for name in frame.columns if name not in unread}
    if "text_a" in named and "text_b" not in named:  # rows in memory call one text so
        named = {"text" if name == "text_a" else name: column for name, column in named.items()}
    return Column(job.output, kind, make, named)


def _local(checkpoint: str | None) -> str | None:
    """Local name of a checkpoint; Beam copies one on another file system."""
    from bert_tf.cluster import paths

    if checkpoint is None or not paths.has_scheme(checkpoint):
        return checkpoint
    try:
        from bert_tf.cluster import fetched
    except ImportError as error:
        raise FlagError(f"{checkpoint}: Apache Beam reads it: {extras.install('beam')}, or name a local copy") from error
    return fetched.checkpoint(checkpoint)


def _trained(checkpoint: str, given: Given) -> Trained:
    named = checkpoints.named([_local(checkpoint) or ""])
    if len(named) > 1 or named[0].problem:
        raise CheckpointError(named[0].problem or f"{checkpoint}: {len(named)} checkpoints, of which one can predict; name it")
    return trained.load(named[0].prefix, given)


def _family(model: Trained, rules: Rules) -> Family:
    return inputs.inputs(model, Columns(), task_name=None, skip_bad_rows=False, rules=rules).family


def _prepared(checkpoint: str, session: SparkSession, job: FrameJob) -> tuple[Family, str, FrameJob]:
    """Returns the family, and the model as sent to executors, see `_sent`."""
    model = _trained(checkpoint, job.model)
    return (_family(model, job.rules), *_sent(model, session, job))


def _sent(model: Trained, session: SparkSession, job: FrameJob) -> tuple[str, FrameJob]:
    """Sends a model to executors; returns its name there and a job with the settings that the sent files lack."""
    from bert_tf.cluster import shipped, spark

    folder = Path(tempfile.mkdtemp(prefix="bert_tf-sent-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that begin later fetch it too
    place = spark.send(session, shipped.pack(model, folder))
    read = Given(max_seq_length=model.max_seq_length, do_lower_case=model.lower_case, long_text=model.long_text)
    return place, dataclasses.replace(job, model=read, machine=with_threads(job.machine, spark.threads(session)))


def _opened(
    place: str, job: FrameJob, load: Callable[[str, Given], Trained] = trained.load
) -> tuple[Trained, InferenceOptions]:
    """Loads the sent model in an executor process, with its inference options."""
    from bert_tf.cluster import shipped, spark

    environment = job.begin()
    model = load(shipped.unpacked(spark.sent(place)), job.model)
    return model, batch_machine.inference(job.machine, job.batch_size, environment=environment)


def _predictions(place: str, job: FrameJob) -> Predictions:
    from bert_tf.cluster.values import Predictions

    model, inference = _opened(place, job)
    return Predictions(model, _family(model, job.rules), inference, skip_bad_rows=job.skip_bad_rows)


def _parts(place: str, job: FrameJob) -> Parts:
    from bert_tf.cluster.gathering import Gatherer
    from bert_tf.cluster.values import Parts

    model, inference = _opened(place, job)
    family = _family(model, job.rules)
    return Parts(Gatherer(model, family, inference), family)


def _vectors(place: str, job: FrameJob, options: VectorOptions) -> TextVectors:
    from bert_tf.cluster.values import TextVectors

    model, inference = _opened(place, job, trained.load_encoder)
    return TextVectors(TextEncoder(model, inference, options), skip_bad_rows=job.skip_bad_rows)
