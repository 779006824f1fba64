"""Multiple choice from rows in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bert_tf.extensions.choice.family import ChoiceFamily
from bert_tf.tasks.rows_task import RowsTask


class ChoiceTask(RowsTask):
    """Multiple choice from rows in memory: questions with options, one of them right.

    A row is a mapping with `context` or `passage`, `question`, `options`, and `answer`: its index from 0, letter or
    text.

        task = ChoiceTask(train=[{"context": "It rains.", "question": "", "options": ["We stay in.", "We swim."], "answer": 0}])
    """

    def __init__(
        self, train: Iterable[Any] | None = None, dev: Iterable[Any] | None = None, test: Iterable[Any] | None = None
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.

        Raises:
          DataError: a row has another format; names split and row.
        """
        super().__init__(ChoiceFamily(), train, dev, test)
