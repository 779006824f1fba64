"""Model outputs as columns of Spark data frames, as calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bert_tf.batch.job import Given, Rules
from bert_tf.head_spec import MEAN
from bert_tf.jobs import frames as job
from bert_tf.jobs import machine_settings
from bert_tf.jobs.batch_settings import MODEL, RULES
from bert_tf.jobs.encode_config import BATCH_SIZE
from bert_tf.jobs.frames import FrameJob
from bert_tf.library.keywords import takes
from bert_tf.library.result import Result
from bert_tf.settings import Setting, named
from bert_tf.vectors.options import Layers, VectorOptions, layer_numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SKIP = Setting("skip_bad_rows", bool, False, "rows that cannot be used get no value; else the first stops the job")
_OF_ALL = (BATCH_SIZE, *MODEL, *machine_settings.SETTINGS)

_ROWS, _PART = "frame", "bert_tf_part"
_OF_MODEL, _RULES = (frozenset(row.name for row in rows) for rows in (MODEL, RULES))


@takes((_SKIP, *RULES, *_OF_ALL))
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
    return job.predict(frame, os.fspath(checkpoint), _job(output, columns, settings))


@takes((*RULES, *_OF_ALL))
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
    return Result(_ROWS, job.evaluate(frame, os.fspath(checkpoint), _job(_PART, columns, settings)), [])


@takes((_SKIP, *_OF_ALL))
def encode_frame(
    frame: DataFrame,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    output: str = "vector",
    pooling: str = MEAN,
    layers: Layers = -1,
    normalize: bool = False,
    **settings: Any,
) -> DataFrame:
    """Returns a Spark data frame with a column of vectors (lists of numbers); see docs/cluster.md.

    Args:
      frame: input rows.
      checkpoint: see `encoder`; it is sent to the executors.
      columns: the columns of text_a and, for pairs, text_b.
      output: name of the new column.
      pooling: see `Encoder.encode`.
      layers: layers to concatenate, see `Encoder.encode`.
      normalize: scales vectors to length 1.
      **settings: those of `encoder`, and `skip_bad_rows`.

    Raises:
      BertError: invalid settings or input.
    """
    name = None if checkpoint is None else os.fspath(checkpoint)
    options = VectorOptions(pooling, layer_numbers(layers), normalize)
    return job.encode_texts(frame, name, _job(output, columns, settings), options, environment=os.environ)


def _job(output: str, columns: Mapping[str, str] | None, settings: Mapping[str, Any]) -> FrameJob:
    given = named((_SKIP, *RULES, *_OF_ALL), settings)
    batch_size, skip = given.pop(BATCH_SIZE.name, None), given.pop(_SKIP.name, False)
    model = Given(**{name: given.pop(name) for name in _OF_MODEL & given.keys()})
    rules = Rules(**{name: given.pop(name) for name in _RULES & given.keys()})
    machine = machine_settings.configured(**given)
    return FrameJob(output, dict(columns or {}), model, rules, machine, batch_size, skip, _begin)


def _begin() -> Mapping[str, str]:
    return os.environ
