"""Columns of a cluster's data frames that a model computes, as calls in a job of Spark."""

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
    """Returns a data frame of Spark with a column of predictions; see docs/cluster.md.

        predictions = bert_tf.predict_frame(frame, "out/mrpc", columns={"text_a": "title", "text_b": "body"})
        predictions.select("id", "prediction.label").write.parquet("out")

    Args:
      frame: rows.
      checkpoint: a checkpoint, or the folder of a run for its best or newest; it is sent to the executors.
      columns: the frame's name of each column that the model reads (text_a, text_b; question, context; tokens; options); None
        where the frame calls them so, or as files do.
      output: name of the new column, a struct with `label` and what else is predicted.
      **settings: those of `load`, and `skip_bad_rows`.

    Raises:
      BertError: something that the caller can fix.
    """
    return job.predict(frame, os.fspath(checkpoint), _job(output, columns, settings))


@takes((*RULES, *_OF_ALL))
def evaluate_frame(
    frame: DataFrame, checkpoint: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None, **settings: Any
) -> Result:
    """Measures a model by the labelled rows of a data frame of Spark; metrics are those of all rows, not means over parts.

    Labels and predictions come to the process that calls, not the texts of sentences. The result lists no predictions.

    Args:
      frame: rows.
      checkpoint: see `predict_frame`.
      columns: see `predict_frame`; `label` is the column of the label.
      **settings: those of `load`.

    Raises:
      BertError: something that the caller can fix.
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
    """Returns a data frame of Spark with a column of vectors, lists of numbers; see docs/cluster.md.

    Args:
      frame: rows.
      checkpoint: see `encoder`; it is sent to the executors.
      columns: the columns of text_a and, of pairs, text_b.
      output: name of the new column.
      pooling: see `Encoder.encode`; so are the next two.
      layers: whose vectors stand side by side.
      normalize: whether vectors have length 1.
      **settings: those of `encoder`, and `skip_bad_rows`.

    Raises:
      BertError: something that the caller can fix.
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
    """Begins in a process of an executor; the import of this module has quieted TensorFlow."""
    return os.environ
