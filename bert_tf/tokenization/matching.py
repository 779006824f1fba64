"""Matches words against a vocabulary: the longest known piece from the left, again and again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS

SUFFIX = "##"


class _Pieces:
    """Pieces that begin a word, or that go on; without their mark."""

    def __init__(self, id_of: Mapping[str, int]) -> None:
        self.id_of = id_of
        # Length of the longest piece by its first two characters: few have many, so few lengths are tried.
        self.longest = {text[:2]: len(text) for text in sorted(id_of, key=len)}


class Matcher:
    """The ids of a word's pieces."""

    def __init__(self, tokens: Iterable[str], unknown: int) -> None:
        id_of = {token: number for number, token in enumerate(tokens)}
        self._begin = _Pieces(id_of)
        self._go_on = _Pieces({token[len(SUFFIX) :]: number for token, number in id_of.items() if token.startswith(SUFFIX)})
        self._unknown = (unknown,)

    def ids(self, word: str) -> Sequence[int]:
        """Returns the ids of a word's pieces; that of [UNK] if the word is too long or a part of it is in no piece."""
        size = len(word)
        if size > MAX_WORD_CHARACTERS:
            return self._unknown
        numbers = []
        start, pieces = 0, self._begin
        while start < size:
            longest = pieces.longest.get(word[start : start + 2], 1)
            for end in range(min(start + longest, size), start, -1):
                number = pieces.id_of.get(word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            numbers.append(number)
            start, pieces = end, self._go_on
        return tuple(numbers)
