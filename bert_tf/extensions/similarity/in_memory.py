"""Pairs of texts from rows in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bert_tf.extensions.similarity import SimilaritySettings
from bert_tf.extensions.similarity.family import ContrastiveFamily, SimilarityFamily
from bert_tf.settings import named, settings_of
from bert_tf.tasks.rows_task import RowsTask


class SimilarityTask(RowsTask):
    """Sentence embeddings from pairs with similarity scores in memory: (text, second text, score).

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
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict, without scores.
          highest_score: score of pairs with the same meaning; the lowest score is 0.

        Raises:
          FlagError: the highest score is invalid.
          DataError: a row has another format; names split and row.
        """
        settings = named(settings_of(SimilaritySettings), {"highest_score": highest_score})
        super().__init__(SimilarityFamily(**settings), train, dev, test)


class ContrastiveTask(RowsTask):
    """Sentence embeddings from matching pairs in memory, contrasted with all other texts: (text, second text).

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
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict.
          temperature: divisor of cosines in the loss.

        Raises:
          FlagError: the temperature is invalid.
          DataError: a row has another format; names split and row.
        """
        settings = named(settings_of(SimilaritySettings), {"temperature": temperature})
        super().__init__(ContrastiveFamily(**settings), train, dev, test)
