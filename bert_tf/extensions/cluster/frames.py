"""Model outputs as columns of Spark data frames."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bert_tf import extras
from bert_tf.batch import inputs, loading
from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.job import Columns, ModelOverrides, Rules
from bert_tf.batch.trained import Trained
from bert_tf.errors import DataError, FlagError
from bert_tf.io import files, scratch
from bert_tf.library.keywords import takes
from bert_tf.library.model import Result
from bert_tf.settings import MOST_EXAMPLES, group, read_settings, setting, settings_of
from bert_tf.tasks.base import Family
from bert_tf.training import batch_machine, sources
from bert_tf.training.settings import MachineSettings, with_threads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from bert_tf.batch.session import Predictor
    from bert_tf.extensions.cluster.spark import Column, Parts, Predictions

P = TypeVar("P", bound="Predictor")

_NOT_READ = ("id", "label")  # of a frame whose columns are not named
_NEEDS = f"Spark needs its packages here and on the executors: {extras.install('spark')}"
_ROWS, _PART = "frame", "bert_tf_part"


@dataclasses.dataclass(frozen=True)
class FrameSettings:
    skip_bad_rows: bool = setting(False, "give unusable rows no value instead of stopping at the first")
    rules: Rules = group(Rules)
    batch_size: int | None = setting(None, "batch size; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES)
    model: ModelOverrides = group(ModelOverrides)
    machine: MachineSettings = group(MachineSettings)


@dataclasses.dataclass(frozen=True)
class Work:
    """A column to compute; pickled."""

    output: str  # column name
    columns: Mapping[str, str]  # frame's names of text_a, text_b, question; empty if they are the same
    settings: FrameSettings
    model: str = ""  # name of the model as sent to the executors


@takes(FrameSettings)
def predict_frame(
    frame: DataFrame,
    checkpoint: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    output: str = "prediction",
    **settings: Any,
) -> DataFrame:
    """Returns a Spark data frame with a column of predictions; see docs/cluster.md.

        predictions = bert_tf.predict_frame(frame, "out/mrpc", columns={"text_a": "title", "text_b": "body"})
        predictions.select("id", "prediction.label").write.parquet("out")

    Args:
      frame: input rows.
      checkpoint: a checkpoint, or a run folder (its best or newest checkpoint); it is sent to the executors.
      columns: maps model inputs (text_a, text_b; question, context; tokens; options) to the frame's columns; None if
        the names are the same or those used in files.
      output: name of the new column, a struct with `label` and the other predictions.
      **settings: those of `load`, and `skip_bad_rows`.

    Raises:
      BertError: invalid settings or input.
    """
    refuse_missing()
    from bert_tf.extensions.cluster import spark

    family, work = _prepared(checkpoint, frame, Work(output, columns or {}, read_settings(FrameSettings, settings)))
    column = new_column(frame, work, spark.type_of(family.kind), functools.partial(_predictions, work))
    return spark.with_column(frame, column)


@takes(row for row in settings_of(FrameSettings) if row.name != "skip_bad_rows")
def evaluate_frame(
    frame: DataFrame, checkpoint: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None, **settings: Any
) -> Result:
    """Evaluates a model on a Spark data frame's labelled rows; metrics cover all rows, not means over partitions.

    Labels and predictions come to the calling process, the texts of sentences do not. The result lists no predictions.

    Args:
      frame: labelled rows.
      checkpoint: see `predict_frame`.
      columns: see `predict_frame`; `label` is the label column.
      **settings: those of `load`.

    Raises:
      BertError: invalid settings or input.
    """
    refuse_missing()
    from bert_tf.extensions.cluster import gathering, spark

    family, work = _prepared(checkpoint, frame, Work(_PART, columns or {}, read_settings(FrameSettings, settings)))
    column = new_column(frame, work, spark.Parts.type, functools.partial(_parts, work), unread=("id",))
    made = spark.collected(spark.with_column(frame, column).select(work.output).dropna())
    parts = (part for row in made for part in gathering.parts_of(io.BytesIO(row[0])))
    evaluation = gathering.evaluation(parts, family)
    if evaluation is None:
        raise DataError("nothing to evaluate on", _ROWS)
    return Result(_ROWS, evaluation, [])


def refuse_missing() -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise FlagError(f"{_NEEDS} ({error})") from error


def new_column(
    frame: DataFrame, work: Work, kind: Any, make: Callable[[], Any], *, unread: Sequence[str] = _NOT_READ
) -> Column:
    from bert_tf.extensions.cluster.spark import Column

    named = dict(work.columns) or {name: name for name in frame.columns if name not in unread}
    if "text_a" in named and "text_b" not in named:  # rows in memory call one text so
        named = {"text" if name == "text_a" else name: column for name, column in named.items()}
    return Column(work.output, kind, make, named)


def find_model(checkpoint: str | os.PathLike[str] | None, work: Work, *, needs_head: bool = True) -> Trained:
    """Beam copies a checkpoint that is on another file system."""
    name = None if checkpoint is None else os.fspath(checkpoint)
    if name is not None and files.has_scheme(name):
        try:
            from bert_tf.extensions.cluster import storage
        except ImportError as error:
            raise FlagError(f"{name}: Apache Beam reads it: {extras.install('beam')}, or name a local copy") from error
        name = storage.checkpoint(name)
    return sources.find(name, work.settings.model, environment=os.environ, needs_head=needs_head)


def _family(model: Trained, rules: Rules) -> Family:
    return inputs.inputs(model, Columns(), task_name=None, skip_bad_rows=False, rules=rules).family


def _prepared(checkpoint: str | os.PathLike[str], frame: DataFrame, work: Work) -> tuple[Family, Work]:
    model = find_model(checkpoint, work)
    return _family(model, work.settings.rules), sent(model, frame, work)


def sent(model: Trained, frame: DataFrame, work: Work) -> Work:
    """Sends a model to executors; returns work with its name there and the settings that the sent files lack."""
    from bert_tf.extensions.cluster import shipped, spark

    session = frame.sparkSession
    folder = scratch.folder()
    packed = shipped.pack(model, Path(folder.name))
    if spark.send(session, packed):
        atexit.register(folder.cleanup)  # executors that start later fetch it too
    else:
        folder.cleanup()
    overrides = ModelOverrides(max_seq_length=model.max_seq_length, do_lower_case=model.lower_case, long_text=model.long_text)
    machine = with_threads(work.settings.machine, spark.threads(session))
    return dataclasses.replace(
        work, model=packed.name, settings=dataclasses.replace(work.settings, model=overrides, machine=machine)
    )


def opened(work: Work, load: Callable[[str, ModelOverrides], Trained] = loading.load) -> tuple[Trained, InferenceOptions]:
    """Loads the sent model in an executor process, with its inference options."""
    from bert_tf.extensions.cluster import shipped, spark

    settings = work.settings
    model = load(shipped.unpacked(spark.sent(work.model)), settings.model)
    return model, batch_machine.inference(
        settings.machine, settings.batch_size, environment=os.environ, checkpoints=[model.prefix]
    )


def _loaded(work: Work, kind: type[P]) -> P:
    model, inference = opened(work)
    predictor = kind(model, _family(model, work.settings.rules), inference)
    predictor.load_weights()
    return predictor


def _predictions(work: Work) -> Predictions:
    from bert_tf.batch.session import Predictor
    from bert_tf.extensions.cluster.spark import Predictions

    return Predictions(_loaded(work, Predictor), skip_bad_rows=work.settings.skip_bad_rows)


def _parts(work: Work) -> Parts:
    from bert_tf.extensions.cluster.gathering import Gatherer
    from bert_tf.extensions.cluster.spark import Parts

    return Parts(_loaded(work, Gatherer))
