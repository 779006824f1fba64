"""The tokenizer interface that features need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bert_tf.tokenization.vocabulary import Vocabulary

IntArray = npt.NDArray[np.int32]


class Pieces(NamedTuple):
    """The pieces of a text as columns, each [n]: ids and character ranges in the text."""

    ids: IntArray
    starts: IntArray
    ends: IntArray


class Tokenizer(Protocol):
    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def lower_case(self) -> bool: ...

    def ids(self, text: str) -> list[int]:
        """Ids of a text's pieces, without special ones around them."""

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        """Ids of each word's pieces; the words are those of one sentence."""

    def pieces(self, text: str) -> Pieces: ...


class WordTokenizer(Tokenizer, Protocol):
    """The further interface that explanations need."""

    def begins(self, text: str, pieces: Pieces) -> list[bool]:
        """Whether each of a text's pieces begins a word, as people read it; a punctuation mark is one."""
