"""Questions with options in memory as a task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bert_tf.tasks.choice.family import ChoiceFamily
from bert_tf.tasks.in_memory import RowsTask


class ChoiceTask(RowsTask):
    """Questions with options of which one is right, from rows in memory.

    A row is a mapping with `context` or `passage`, `question`, `options`, and `answer`: its number, letter or text.

        task = ChoiceTask(train=[{"context": "It rains.", "question": "", "options": ["We stay in.", "We swim."], "answer": 0}])
    """

    def __init__(
        self, train: Iterable[Any] | None = None, dev: Iterable[Any] | None = None, test: Iterable[Any] | None = None
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without answers.

        Raises:
          DataError: a row is not of the form above; names split and row.
        """
        super().__init__(ChoiceFamily(), train, dev, test)
