"""The nearest texts of an index, as a call."""

from __future__ import annotations

import os
from typing import Any

from bert_tf.jobs import search as job
from bert_tf.jobs.search import Found
from bert_tf.jobs.search_config import SETTINGS, configured
from bert_tf.library.keywords import takes


@takes(SETTINGS)
def search(**settings: Any) -> list[Found]:
    """Finds the texts of an index that are nearest by cosine; does what `python -m bert_tf search` does.

        bert_tf.search(index="vectors.npz", query="Who has won?")[0].hits[0].text

    Args:
      **settings: those of the command, by the names of its flags; `queries` may also be a list of texts.

    Returns:
      For each query its `hits`, the nearest first: `score`, `row`, `id`, `text`.

    Raises:
      BertError: something that the caller can fix.
    """
    return list(job.search(configured(**settings), environment=os.environ))
