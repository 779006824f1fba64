"""Tags of words from rows in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bert_tf.extensions.tags.columns import found_labels
from bert_tf.extensions.tags.family import TagFamily
from bert_tf.head_spec import TAGS
from bert_tf.tasks.base import TRAIN
from bert_tf.tasks.in_memory import label_names
from bert_tf.tasks.rows_task import RowsTask
from bert_tf.tasks.sentence.rows import records


class TagTask(RowsTask):
    """Token classification from rows in memory: pairs of words and tags, or mappings with `tokens` and `tags`.

    task = TagTask(train=[(["Ann", "left", "Rome"], ["B-PER", "O", "B-LOC"])])
    """

    def __init__(
        self,
        train: Iterable[Any] | None = None,
        dev: Iterable[Any] | None = None,
        test: Iterable[Any] | None = None,
        *,
        labels: Iterable[str] | None = None,
        constrained_decoding: bool = False,
    ) -> None:
        """Reads all rows once; iterators are exhausted.

        Args:
          train: rows to train on.
          dev: rows to evaluate on.
          test: rows to predict: words, or texts.
          labels: all tags, entities in IOB2; by default those of `train`.
          constrained_decoding: whether to predict only valid tag sequences.

        Raises:
          FlagError: `labels` are not distinct names.
          DataError: a row has another format or an unknown tag; names split and row. Also raised if `labels` is None and
            `train` does not have at least two tags.
        """
        rows = list(() if train is None else records(train, TRAIN))
        tag_names = label_names(labels, TAGS) or found_labels(rows, TRAIN)
        super().__init__(TagFamily(tag_names, constrained_decoding), None if train is None else rows, dev, test)
