"""How often each word occurs in texts of any size."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bert_tf.tokenization.wordpiece import words

_MOST_CHUNKS = 1 << 20  # that wait to be cut into words, each once
_MOST_WORDS = 1 << 24  # that are remembered, in some 2 GB


@dataclasses.dataclass(frozen=True)
class Counts:
    """The words of a corpus.

    Attributes:
      words: how often each occurs, as `wordpiece.words` yields them; what occurred once may be missing of a very large corpus.
      texts: how many texts there were, of which each is a sentence.
      lower_case: whether letters are lowered.
    """

    words: Counter[str]
    texts: int
    lower_case: bool

    @property
    def total(self) -> int:
        """How many words there are, each as often as it occurs."""
        return sum(self.words.values())

    def ranked(self) -> list[tuple[str, int]]:
        """Returns words with their numbers, the most frequent first, then by their letters."""
        return sorted(self.words.items(), key=lambda pair: (-pair[1], pair[0]))


class Chunks(NamedTuple):
    """Part of a corpus.

    Attributes:
      times: how often each text between two blanks occurs.
      texts: how many texts there are.
    """

    times: Counter[str]
    texts: int


def chunks(texts: Sequence[str]) -> Chunks:
    """Counts what is between two blanks: no rule of the tokenizer looks past one, and most of it occurs many times.

    Args:
      texts: all that are counted at once, in memory.
    """
    return Chunks(Counter(" ".join(texts).split(" ")), len(texts))


def count(parts: Iterable[Chunks], *, lower_case: bool, most: int = _MOST_WORDS) -> Counts:
    """Counts the words of a corpus.

    Args:
      parts: of it, read once.
      lower_case: as of `WordPieceTokenizer`.
      most: different words that are remembered; beyond it those that occurred once so far are forgotten.
    """
    found: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    texts = 0
    for part in parts:
        waiting.update(part.times)
        texts += part.texts
        if len(waiting) > min(_MOST_CHUNKS, most):
            _cut(waiting, found, lower_case)
            _forget(found, most)
    _cut(waiting, found, lower_case)
    return Counts(found, texts, lower_case)


def _cut(waiting: Counter[str], found: Counter[str], lower_case: bool) -> None:
    """Moves texts to the words that they hold."""
    for chunk, times in waiting.items():
        for word in words(chunk, lower_case=lower_case):
            found[word] += times
    waiting.clear()


def _forget(found: Counter[str], most: int) -> None:
    if len(found) > most:
        for word in [word for word, times in found.items() if times == 1]:
            del found[word]
