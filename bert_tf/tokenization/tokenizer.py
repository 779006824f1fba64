"""The tokenizer interface that features need, and the tokenizer that a file defines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from bert_tf import extension
from bert_tf.errors import FlagError, VocabularyError
from bert_tf.io import files
from bert_tf.tokenization import text_rules
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import Pieces, WordPieceTokenizer

if TYPE_CHECKING:
    from bert_tf.tokenization.library import LibraryVocabulary

SENTENCEPIECE = ("spm.model", "spiece.model", "30k-clean.model", "sentencepiece.bpe.model")  # names of models of it


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


def read_tokenizer(path: str | os.PathLike[str], *, words_as_they_are: bool = False) -> Vocabulary:
    """Reads a vocab.txt, a tokenizer.json, or a file of an extension, by the name's ending."""
    source = Path(path)
    content = _content(source)
    if content is None:
        return Vocabulary.from_file(source)
    from bert_tf.tokenization import library

    return library.read_vocabulary(content, source, words_as_they_are=words_as_they_are)


def _content(path: Path) -> str | None:
    """The text of a tokenizer.json, or of that which an extension makes of another file; None for a vocab.txt."""
    if path.suffix == Path(text_rules.PIPELINE).suffix:
        return _text(path)
    if path.name in SENTENCEPIECE:
        extension.needed("sentencepiece", str(path))
    reader = extension.named("tokenizers").get(path.suffix)
    text: str | None = extension.load(reader)(path) if reader else None
    return text


def _text(path: Path) -> str:
    try:
        return files.read_bytes(path).decode()
    except OSError as error:
        raise VocabularyError(f"cannot read the tokenizer: {files.reason(error)}", path) from error
    except UnicodeDecodeError as error:
        raise VocabularyError(f"not UTF-8 at byte {error.start}", path) from error


def file_in(folder: Path, usual: str) -> Path | None:
    """Returns the file that defines the tokenizer of a folder in Hugging Face's layout: `usual`, else another one."""
    names = (usual, text_rules.PIPELINE, *SENTENCEPIECE)
    return next((folder / name for name in names if (folder / name).is_file()), None)


def tokenizer_of(vocabulary: Vocabulary, *, lower_case: bool) -> WordTokenizer:
    if not vocabulary.own_rules:
        return WordPieceTokenizer(vocabulary, lower_case=lower_case)
    from bert_tf.tokenization.library import LibraryTokenizer

    return LibraryTokenizer(cast("LibraryVocabulary", vocabulary))


def word_pieces(tokenizer: Tokenizer, asking: str) -> WordPieceTokenizer:
    """Returns the tokenizer, if it is the one that `asking` needs; else raises FlagError."""
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise FlagError(f"{asking}: only for models with a WordPiece vocabulary (vocab.txt); this one has a tokenizer.json")
    return tokenizer
