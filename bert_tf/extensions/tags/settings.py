"""Settings of tags: columns of files, and decoding."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class TagSettings:
    """Columns of words and tags in column files, and decoding."""

    TITLE: ClassVar[str] = "Tags (--task_name=CoNLL2003)"

    word_column: int = setting(1, "word column, counted from 1; -1 is the last", column_of="rows")
    tag_column: int = setting(-1, "tag column, counted from 1; -1 is the last", column_of="labels")
    raw_text: bool = setting(
        False, "text to predict is plain, one sentence per line, split at blanks and punctuation", column_of="rows"
    )
    constrained_decoding: bool = setting(False, "most probable legal tag sequence of a sentence (Viterbi)", decodes=True)
