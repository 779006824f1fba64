"""Pairs in memory as tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bert_tf.settings import named, settings_of
from bert_tf.tasks.in_memory import RowsTask
from bert_tf.tasks.similarity.family import ContrastiveFamily, SimilarityFamily
from bert_tf.tasks.similarity.settings import SimilaritySettings


class SimilarityTask(RowsTask):
    """Pairs of texts with scores, of which vectors are learned: (text, second text, score), from rows in memory.

    task = SimilarityTask(train=[("He left.", "He went away.", 4.8)], highest_score=5)
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        highest_score: float = 1.0,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without scores.
          highest_score: of pairs that say the same; the lowest is 0.

        Raises:
          FlagError: the score is none.
          DataError: a row is not of the form above; names split and row.
        """
        given = named(settings_of(SimilaritySettings), {"highest_score": highest_score})
        super().__init__(SimilarityFamily(**given), train, dev, test)


class ContrastiveTask(RowsTask):
    """Pairs of texts that belong together, told apart from all others by their vectors: (text, second text).

    task = ContrastiveTask(train=[("Who wrote it?", "Ann did.")])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        temperature: float = 0.05,
    ) -> None:
        """Reads all rows once; iterators are at their end then.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict.
          temperature: that cosines are divided by in the loss.

        Raises:
          FlagError: the temperature is none.
          DataError: a row is not of the form above; names split and row.
        """
        given = named(settings_of(SimilaritySettings), {"temperature": temperature})
        super().__init__(ContrastiveFamily(**given), train, dev, test)
