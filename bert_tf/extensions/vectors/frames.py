"""Vectors of texts as a column of Spark data frames."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.batch import loading
from bert_tf.batch.job import Rules
from bert_tf.extensions.vectors.options import Layers, VectorOptions, layer_numbers
from bert_tf.extensions.vectors.text_encoder import TextEncoder
from bert_tf.library.keywords import takes
from bert_tf.settings import read_settings, settings_of
from bert_tf.tasks.base import TEST
from bert_tf.tasks.sentence.rows import read_rows

extension.needed("cluster", "encode_frame")
from bert_tf.extensions.cluster import frames  # noqa: E402
from bert_tf.extensions.cluster.frames import FrameSettings, Work  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from bert_tf.extensions.cluster.spark import Rows

_RULES = frozenset(row.name for row in settings_of(Rules))


@takes(row for row in settings_of(FrameSettings) if row.name not in _RULES)
def encode_frame(
    frame: DataFrame,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    output: str = "vector",
    pooling: str | None = None,
    layers: Layers = -1,
    normalize: bool | None = None,
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
      normalize: see `Encoder.encode`.
      **settings: those of `encoder`, and `skip_bad_rows`.

    Raises:
      BertError: invalid settings or input.
    """
    frames.refuse_missing()
    import pyarrow

    from bert_tf.extensions.cluster import spark

    options = VectorOptions(pooling, layer_numbers(layers), normalize)
    work = Work(output, columns or {}, read_settings(FrameSettings, settings))
    model = frames.find_model(checkpoint, work, needs_head=False)
    options.of_model(model).head(model.config)  # what the model does not have is said here, not by the executors
    work = frames.sent(model, frame, work)
    column = frames.new_column(frame, work, pyarrow.list_(pyarrow.float32()), functools.partial(_vectors, work, options))
    return spark.with_column(frame, column)


class TextVectors:
    """A loaded encoder; must be closed."""

    def __init__(self, encoder: TextEncoder, *, skip_bad_rows: bool) -> None:
        self._encoder, self._skip = encoder, skip_bad_rows
        self.close = encoder.close

    def values(self, rows: Rows) -> list[Any]:
        from bert_tf.extensions.cluster.spark import each

        results = each(rows, self._vectors, skip=self._skip)
        return [None if isinstance(result, dict) else result for result in results]

    def _vectors(self, rows: Rows) -> list[Any]:
        return list(self._encoder.vectors(self._encoder.read(read_rows(rows, TEST, kind=None))).values)


def _vectors(work: Work, options: VectorOptions) -> TextVectors:
    encoder = TextEncoder(*frames.opened(work, loading.load_encoder), options)
    return TextVectors(encoder, skip_bad_rows=work.settings.skip_bad_rows)
