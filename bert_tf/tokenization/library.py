"""Tokenizers of a tokenizer.json, by the library `tokenizers`: byte-level BPE (RoBERTa), Unigram (XLM-RoBERTa, CamemBERT).

The file sets all rules: letters keep their case unless it lowers them; a special token written in a text is that token.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf import extras
from bert_tf.errors import FlagError, VocabularyError
from bert_tf.io import documents, files
from bert_tf.tokenization.characters import is_punctuation
from bert_tf.tokenization.tokenizer import Pieces, Tokenizer, WordTokenizer
from bert_tf.tokenization.vocabulary import PUBLISHED, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

PAD, UNK, CLS, SEP, MASK = "<pad>", "<unk>", "<s>", "</s>", "<mask>"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
_AROUND = (2, 4)  # special tokens of one text, <s> A </s>, and of two, <s> A </s></s> B </s>
_MOST_GAPS = 100_000  # ids without a piece
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can escape them, UTF-8 has none


class LibraryVocabulary(Vocabulary):
    """The pieces of a tokenizer.json, and its rules in `library`."""

    file = "tokenizer.json"
    separators = 2
    special = SPECIAL_TOKENS
    own_rules = True

    def __init__(self, text: str, *, path: object = "tokenizer.json") -> None:
        """Raises VocabularyError unless special tokens and their places are RoBERTa's, FlagError without the library."""
        self._text, self.text_rules = text, PUBLISHED
        self.library = _library(text, path)
        self._ids = self.library.get_vocab(with_added_tokens=True)
        named = {number: token for token, number in self._ids.items()}
        if max(named, default=0) > len(named) + _MOST_GAPS:
            token = named[max(named)]
            raise VocabularyError(f"{token!r:.80} has the id {max(named)}, but there are {len(named)} pieces", path)
        self.tokens = tuple(named.get(number, f"[{number}]") for number in range(max(named, default=0) + 1))
        missing = [token for token in SPECIAL_TOKENS if token not in self._ids]
        if missing:
            raise VocabularyError(f"{', '.join(missing)} missing; is this a tokenizer of RoBERTa's kind?", path)
        around = tuple(self.library.num_special_tokens_to_add(is_pair) for is_pair in (False, True))
        if around != _AROUND:
            said = "%d special tokens around a text and %d around a pair" % around
            raise VocabularyError(f"puts {said}; only <s> A </s></s> B </s> is known, with 2 and 4", path)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.ids(SPECIAL_TOKENS)
        self.folder: Path | None = None
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()

    def to_text(self) -> str:
        return self._text

    def to_text_of_words(self) -> str:
        """Each word has a blank before it, the first too: RoBERTa knows words so."""
        content = documents.json_value(self._text)
        steps = [step for step in _steps(content.get("pre_tokenizer")) if step.get("add_prefix_space") is False]
        for step in steps:
            step["add_prefix_space"] = True
        return documents.to_json(content) if steps else self._text


class LibraryTokenizer:
    """Splits texts as `tokenizers` does."""

    lower_case = False  # the file has rules of its own

    def __init__(self, vocabulary: LibraryVocabulary) -> None:
        self.vocabulary = vocabulary
        self._library = vocabulary.library

    def ids(self, text: str) -> list[int]:
        found: list[int] = self._library.encode(_valid(text), add_special_tokens=False).ids
        return found

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        found = self._of_words.encode(list(map(_valid, words)), is_pretokenized=True, add_special_tokens=False)
        ids: list[list[int]] = [[] for _ in words]
        for number, word in zip(found.ids, found.word_ids):
            ids[word].append(number)
        return ids

    def pieces(self, text: str) -> Pieces:
        """A blank before a piece is not in its range, whether or not it is in the piece."""
        found = self._library.encode(_valid(text), add_special_tokens=False)
        ranges = np.array([_trimmed(text, *offsets) for offsets in found.offsets], np.int32).reshape(-1, 2)
        return Pieces(np.array(found.ids, np.int32), *np.maximum.accumulate(ranges, axis=0).T)

    def begins(self, text: str, pieces: Pieces) -> list[bool]:
        return [_divided(text, end, start) for end, start in zip([0, *pieces.ends[:-1].tolist()], pieces.starts.tolist())]

    @functools.cached_property
    def _of_words(self) -> Any:
        text = self.vocabulary.to_text_of_words()
        return self._library if text == self.vocabulary.to_text() else _library(text)


def read(path: str | os.PathLike[str]) -> Vocabulary:
    """Reads a vocab.txt or a tokenizer.json, by the name's ending."""
    if Path(path).suffix != ".json":
        return Vocabulary.from_file(path)
    try:
        text = files.read_bytes(path).decode()
    except OSError as error:
        raise VocabularyError(f"cannot read the tokenizer: {files.reason(error)}", path) from error
    except UnicodeDecodeError as error:
        raise VocabularyError(f"not UTF-8 at byte {error.start}", path) from error
    vocabulary = LibraryVocabulary(text, path=path)
    vocabulary.folder = Path(path).absolute().parent
    return vocabulary


def tokenizer_of(vocabulary: Vocabulary, *, lower_case: bool) -> WordTokenizer:
    if isinstance(vocabulary, LibraryVocabulary):
        return LibraryTokenizer(vocabulary)
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)


def word_pieces(tokenizer: Tokenizer, asking: str) -> WordPieceTokenizer:
    """Returns the tokenizer, if it is the one that `asking` needs; else raises FlagError."""
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise FlagError(f"{asking}: only for models with a WordPiece vocabulary (vocab.txt); this one has a tokenizer.json")
    return tokenizer


def _library(text: str, path: object = "tokenizer.json") -> Any:
    if importlib.util.find_spec("tokenizers") is None:
        raise FlagError(f"{path} needs tokenizers: {extras.install('vocabulary')}")
    from tokenizers import Tokenizer

    try:
        made = Tokenizer.from_str(text)
    except Exception as error:  # the library has no class of its own
        raise VocabularyError(f"not a tokenizer that `tokenizers` reads: {error}", path) from error
    made.no_padding()
    made.no_truncation()
    return made


def _steps(step: Any) -> Iterator[dict[str, Any]]:
    """The steps of a part of the pipeline, single or in a sequence."""
    if isinstance(step, dict):
        yield step
        for inner in step.get("pretokenizers", ()):
            yield from _steps(inner)


def _valid(text: str) -> str:
    return _LONE_SURROGATES.sub("\ufffd", text)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    blanks = end - start - len(text[start:end].lstrip())
    return (start + blanks if start + blanks < end else start), end


def _divided(text: str, end: int, start: int) -> bool:
    """Whether a piece's end and the next one's start divide two words; several pieces may share one character."""
    return start > end or (start == end and any(map(is_punctuation, text[max(end - 1, 0) : end + 1])))
