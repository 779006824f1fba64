"""Questions about a text from rows in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.settings import SpanSettings
from bert_tf.settings import named, settings_of
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.settings import path_names


class SpanTask(RowsTask):
    """Extractive question answering from rows in memory: questions with texts that contain the answers.

    A row is a mapping, or a row of a pandas data frame, with `question`, `context`, `answer`, and `start`, its first
    character, required if the answer occurs more than once; or a sequence of these. Rows to predict have no answer.

        task = SpanTask(train=[{"question": "Who left?", "context": "Ann left early.", "answer": "Ann"}])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        **settings: Any,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.
          **settings: fields of `SpanSettings`, for example `doc_stride=64` or `version_2_with_negative=True`.

        Raises:
          FlagError: a setting is unknown or has an invalid value.
          DataError: a row has another format; names split and row.
        """
        known = [row for row in settings_of(SpanSettings) if row.name not in path_names()]
        super().__init__(SpanFamily.from_settings(SpanSettings(**named(known, settings))), train, dev, test)
