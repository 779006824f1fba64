"""Settings of tagging."""

from __future__ import annotations

import dataclasses

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class TagSettings:
    """Where words and tags stand in column files, and how tags are decoded."""

    word_column: int = setting(1, "column of the words, counted from 1", lowest=1)
