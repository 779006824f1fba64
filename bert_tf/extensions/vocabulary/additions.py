"""Words added to a vocabulary: their choice, their previous pieces, and their rows in a model's word table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import DataError
from bert_tf.extensions.vocabulary.counting import LONGEST, Counts
from bert_tf.io import files
from bert_tf.tokenization.characters import CHUNK, words
from bert_tf.tokenization.vocabulary import UNK, UNUSED, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

Array = npt.NDArray[Any]
WORD_TABLE = "bert/embeddings/word_embeddings"
BY_PIECE = (WORD_TABLE, "cls/predictions/output_bias")  # [V, D] and [V]
_TIED = "cls.predictions.decoder."  # prefix of PyTorch's copies of both
Pieces = Mapping[int, Sequence[int]]  # for each new row, the rows of its pieces


class NewWord(NamedTuple):
    """A word that becomes a piece."""

    word: str  # normalized by the tokenizer
    pieces: tuple[str, ...]  # that it was split into
    times: int = 0  # occurrences in its corpus; 0 without one

    @property
    def saved(self) -> int:
        return self.times * (len(self.pieces) - 1)


class WordList(NamedTuple):
    """Content of a word file."""

    words: tuple[NewWord, ...]  # the new ones
    notes: tuple[str, ...]  # one line for each skipped or normalized word


class NewVocabulary(NamedTuple):
    """A vocabulary with new words."""

    vocabulary: Vocabulary
    rows: tuple[int, ...]  # of the new words, in their order


def unused_rows(vocabulary: Vocabulary) -> list[int]:
    """Returns the rows that no text uses, [unused0] etc."""
    return [row for row, token in enumerate(vocabulary.tokens) if UNUSED.fullmatch(token)]


def most_saving(counts: Counts, tokenizer: WordPieceTokenizer, top: int) -> tuple[NewWord, ...]:
    """Returns the `top` words whose rows save the most pieces, sorted by savings, then alphabetically."""
    candidates = (NewWord(word, tuple(tokenizer.pieces_of_word(word)), times) for word, times in counts.words.items())
    saving = [new for new in candidates if new.saved and len(new.word) <= LONGEST]
    return tuple(sorted(saving, key=lambda new: (-new.saved, new.word))[:top])


def listed(path: str | os.PathLike[str], tokenizer: WordPieceTokenizer) -> WordList:
    """Reads one word per line; raises DataError for a line with several words or a repeated word."""
    lines = _lines(path)
    _refuse_unusable(path, lines)
    new: dict[str, NewWord] = {}
    notes = []
    for line, text in lines:
        parts = words(text, tokenizer.rules)
        why = _left_out(parts, tokenizer.vocabulary, new)
        if why:
            notes.append(f"{path}:{line}: {text!r:.80} is left out: {why}")
            continue
        word, pieces = parts[0], tuple(tokenizer.pieces_of_word(parts[0]))
        if word != text:
            notes.append(f"{path}:{line}: {text!r:.80} becomes {word!r:.80}, as the tokenizer sees it")
        if pieces == (UNK,):
            notes.append(f"{path}:{line}: {text!r:.80} has characters that no piece has: its vector begins as that of {UNK}")
        new[word] = NewWord(word, pieces)
    return WordList(tuple(new.values()), tuple(notes))


def _lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Returns the non-empty lines with their numbers from 1."""
    try:
        data = files.read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise DataError(f"cannot read the words: {files.reason(error)}", path) from error
    numbered = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8; a list of words has one a line", path, number) from error
        if text:
            numbered.append((number, text))
    if not numbered:
        raise DataError("no word in the file", path)
    return numbered


def _refuse_unusable(path: object, lines: Iterable[tuple[int, str]]) -> None:
    first: dict[str, int] = {}
    for number, text in lines:
        if "\0" in text:
            raise DataError("a NUL character; a list of words has one a line", path, number)
        if len(CHUNK.findall(text)) > 1:
            raise DataError(f"{text!r:.80} is several words; write one a line", path, number)
        if first.setdefault(text, number) != number:
            raise DataError(f"{text!r:.80} is already in line {first[text]}; write each word once", path, number)


def _left_out(parts: Sequence[str], vocabulary: Vocabulary, new: Iterable[str]) -> str | None:
    if len(parts) != 1:
        return f"the tokenizer cuts it into {' '.join(parts)}"[:200] if parts else "the tokenizer deletes its characters"
    if len(parts[0]) > LONGEST:
        return f"more than {LONGEST} characters"
    if parts[0] in vocabulary:
        return "in the vocabulary already"
    return "in the list already" if parts[0] in new else None


def extended(vocabulary: Vocabulary, new: Iterable[str]) -> NewVocabulary:
    """Adds words to a vocabulary: in unused rows first, then in new ones."""
    tokens, free = list(vocabulary.tokens), iter(unused_rows(vocabulary))
    rows = []
    for word in new:
        row = next(free, len(tokens))
        tokens[row : row + 1] = [word]
        rows.append(row)
    return NewVocabulary(Vocabulary(tokens, rules=vocabulary.text_rules), tuple(rows))


def with_new_rows(entries: Mapping[str, Array], pieces: Pieces) -> dict[str, Array]:
    """Adds rows for new words, each the mean (in float64) of its pieces' rows; drops the table copies of other layouts."""
    return {
        name: _with_rows(array, pieces) if name in BY_PIECE else array
        for name, array in entries.items()
        if not name.startswith(_TIED)
    }


def _with_rows(array: Array, pieces: Pieces) -> Array:
    rows = max(len(array), *(row + 1 for row in pieces))
    larger = np.empty((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    for row, others in pieces.items():
        larger[row] = array[list(others)].astype(np.float64).mean(axis=0)
    return larger
