"""Settings of tagging."""

from __future__ import annotations

import dataclasses

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class TagSettings:
    """Columns of words and tags in column files, and decoding."""

    word_column: int = setting(1, "column of the words, counted from 1; -1 is the last")
    tag_column: int = setting(-1, "column of the tags, counted from 1; -1 is the last")
    raw_text: bool = setting(False, "lines to predict are plain texts, split into words at blanks and punctuation")
    constrained_decoding: bool = setting(False, "the most probable tags of a sentence that are legal together, by Viterbi")
