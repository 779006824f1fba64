"""The tokens of a corpus on disk, memory-mapped.

A store is built piece by piece by any number of processes with the same bytes, and a killed build resumes.
Shapes: K tokens, S sentences, D documents.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.errors import DataError, VocabularyError
from bert_tf.extensions.pretrain.corpus import appending, processes, sentences
from bert_tf.extensions.pretrain.corpus.appending import Appending
from bert_tf.extensions.pretrain.corpus.documents import Corpus, Parsed, Piece, Place, parse, pieces
from bert_tf.io import atomic, documents, lock
from bert_tf.io.log_form import log
from bert_tf.tokenization.tokenizer import Tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary

Int64Array = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

FORMAT = 1
_IDS, _SENTENCES, _DOCUMENTS = "ids.bin", "sentences.bin", "documents.bin"
_BEGIN = {"place": Place(), "last_start": -1}
_SENTENCES_OF_PART = 1 << 16
_SHOWN = 200  # characters of names in a message
_SAMPLE = 1_000_000  # first tokens, which judge a store
_MANY_UNKNOWN = 0.05  # share of [UNK] that a vocabulary of the same language does not reach


@dataclasses.dataclass(frozen=True)
class TokenStore:
    """A tokenized corpus. Sentences and documents are never empty."""

    ids: Array  # [K] uint16; uint32 above 65,536 vocabulary entries
    sentence_starts: Int64Array  # [S + 1] first token of each, and K; ascending
    document_starts: Int64Array  # [D + 1] first sentence of each, and S; ascending
    vocabulary: str  # its fingerprint
    lower_case: bool
    key: str  # digest of everything that determines the bytes
    folder: Path

    @property
    def documents(self) -> int:
        return len(self.document_starts) - 1

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], vocabulary: Vocabulary) -> TokenStore:
        """Raises DataError if there is no store or a file is truncated, VocabularyError if it has another vocabulary."""
        store = cls._opened(Path(folder))
        if store.vocabulary != vocabulary.fingerprint:
            raise VocabularyError("its tokens were made with another vocabulary; use that one, or tokenize again", folder)
        return store

    @classmethod
    def _opened(cls, folder: Path) -> TokenStore:
        record = appending.record(folder)
        if record is None:
            raise DataError("no store of tokens: it is missing, damaged, or its build was not finished", folder)
        ids, sentences, documents = appending.mapped(folder, _types(record["pieces"]))
        return cls(ids, sentences, documents, record["vocabulary"], record["lower_case"], record["key"], folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as the folder's name."""
        return TokenStore._opened, (self.folder,)

    def release(self) -> None:
        """Releases resident pages, which would grow to the size of the store."""
        appending.release(self.ids, self.sentence_starts, self.document_starts)


def build(folder: str | os.PathLike[str], corpus: Corpus, tokenizer: Tokenizer, *, workers: int | None = None) -> TokenStore:
    """Builds the store of a corpus, reusing or resuming one with the same key.

    `folder` holds nothing else, and another store in it is replaced. `workers` (None: one per core) does not affect the
    bytes. Raises DataError if a file is unusable or there is no text, OutputError if the store cannot be written.
    """
    path, key, again = Path(folder), key_of(corpus, tokenizer), corpus.can_be_read_again
    if not (again and _is_made(path, key)):
        tokenized = functools.partial(tokenize, corpus=corpus, tokenizer=tokenizer)
        with Appending(path, key, _types(len(tokenizer.vocabulary)), _BEGIN, goes_on=again) as writer:
            left = pieces(corpus, Place(*writer.state["place"]))
            parts = processes.mapped(tokenized, left, workers=workers or processes.cores(), unit="MB of text")
            _write(writer, parts, tokenizer, corpus)
    return TokenStore.open(path, tokenizer.vocabulary)


def key_of(corpus: Corpus, tokenizer: Tokenizer) -> str:
    """Digest of everything that determines a store's bytes; files count by path, size and modification time."""
    identity = [
        FORMAT,
        [(path, corpus.form_of(path), _state(path)) for path in corpus.files],
        [corpus.text_key, corpus.language, sentences.version()] if corpus.is_cut else [],
        tokenizer.vocabulary.fingerprint,
        tokenizer.lower_case,
    ]
    return hashlib.sha256(documents.to_json(identity).encode()).hexdigest()


def build_of_file(number: int, folder: Path, corpus: Corpus, tokenizer: Tokenizer) -> None:
    """Tokenizes one file into its own subfolder, for `join`; it may have no text. Raises DataError or OutputError."""
    of_file = dataclasses.replace(corpus, files=corpus.files[number : number + 1])
    subfolder, key = _folder_of_file(folder, number), key_of(of_file, tokenizer)
    atomic.make_folder(folder.parent)
    with lock.claiming(subfolder, wait=True):  # a pipeline may give two workers the same task
        if not _is_made(subfolder, key):
            with Appending(subfolder, key, _types(len(tokenizer.vocabulary)), _BEGIN) as writer:
                left = pieces(of_file, Place(*writer.state["place"]))
                _write(writer, (tokenize(piece, of_file, tokenizer) for piece in left), tokenizer)


def join(folder: Path, corpus: Corpus, tokenizer: Tokenizer) -> TokenStore:
    """Joins separately tokenized files into the store that `build` makes, and deletes their folders."""
    key = key_of(corpus, tokenizer)
    if not _is_made(folder, key):
        each = [_folder_of_file(folder, number) for number in range(len(corpus.files))]
        with Appending(folder, key, _types(len(tokenizer.vocabulary)), _BEGIN, goes_on=False) as writer:
            _write(writer, (part for subfolder in each for part in _parts(TokenStore._opened(subfolder))), tokenizer, corpus)
        for subfolder in each:
            shutil.rmtree(subfolder, ignore_errors=True)
    return TokenStore.open(folder, tokenizer.vocabulary)


def _is_made(folder: Path, key: str) -> bool:
    record = appending.record(folder)
    return record is not None and record["key"] == key


def _folder_of_file(folder: Path, number: int) -> Path:
    return folder.with_name(f"{folder.name}-{number:06d}")


def _parts(store: TokenStore) -> Iterator[Part]:
    for first in range(0, len(store.sentence_starts) - 1, _SENTENCES_OF_PART):
        at = store.sentence_starts[first : first + _SENTENCES_OF_PART + 1]
        among = slice(*np.searchsorted(store.document_starts[:-1], [first, first + len(at) - 1]))
        yield Part(store.ids[at[0] : at[-1]], np.diff(at), store.document_starts[among] - first, Place())


class Part(NamedTuple):
    """A tokenized piece."""

    ids: Array
    lengths: Int64Array  # tokens per sentence
    starts: Int64Array  # see `Parsed`; counts sentences that have tokens
    after: Place  # where the next piece begins


def tokenize(piece: Piece, corpus: Corpus, tokenizer: Tokenizer) -> Part:
    """Raises DataError as `parse`."""
    parsed: Parsed = parse(piece, corpus)
    blank = " " if tokenizer.vocabulary.own_rules else ""  # before a sentence, as within a text; BERT's rules drop it
    ids = [tokenizer.ids(blank + sentence) for sentence in parsed.sentences]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    before = np.concatenate([[0], np.cumsum(lengths > 0)])  # sentences with tokens before each
    flat = np.fromiter(itertools.chain.from_iterable(ids), _id_type(len(tokenizer.vocabulary)), int(lengths.sum()))
    return Part(flat, lengths[lengths > 0], before[np.array(parsed.starts, np.int64)], piece.after)


def _write(writer: Appending, parts: Iterable[Part], tokenizer: Tokenizer, not_empty: Corpus | None = None) -> None:
    """Appends parts, with sentences and tokens renumbered from the start of the corpus, and the total numbers of both."""
    for part in parts:
        tokens, sentence_count = writer.sizes[_IDS], writer.sizes[_SENTENCES]
        starts = np.unique(part.starts) + sentence_count
        starts = starts[starts > writer.state["last_start"]]
        last = int(starts[-1]) if len(starts) else writer.state["last_start"]
        columns = {_IDS: part.ids, _SENTENCES: np.cumsum(part.lengths) - part.lengths + tokens, _DOCUMENTS: starts}
        writer.append(columns, place=part.after, last_start=last)
    tokens, sentence_count = writer.sizes[_IDS], writer.sizes[_SENTENCES]
    if not_empty is not None and not tokens:
        raise DataError("no text in any file", ", ".join(not_empty.files)[:_SHOWN])
    ends = {_SENTENCES: np.array([tokens])}
    if writer.state["last_start"] < sentence_count:
        ends[_DOCUMENTS] = np.array([sentence_count])
    writer.append(ends)
    vocabulary = tokenizer.vocabulary
    writer.finish(vocabulary=vocabulary.fingerprint, pieces=len(vocabulary), lower_case=tokenizer.lower_case)


def _types(pieces_of_vocabulary: int) -> dict[str, np.dtype[Any]]:
    """Column types in the order of `TokenStore`."""
    int64 = np.dtype(np.int64)
    return {_IDS: _id_type(pieces_of_vocabulary), _SENTENCES: int64, _DOCUMENTS: int64}


def _id_type(pieces_of_vocabulary: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if pieces_of_vocabulary <= 1 << 16 else np.uint32)


def _state(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:  # the reader reports why
        return None
    return status.st_size, status.st_mtime_ns


def warn_of_unknown(tokens: TokenStore, vocabulary: Vocabulary) -> None:
    """Warns if many tokens are unknown: the vocabulary hardly fits the text."""
    share = np.mean(tokens.ids[:_SAMPLE] == vocabulary.unk_id)
    if share > _MANY_UNKNOWN:
        log.warning(
            "%.1f %% of the pieces are [UNK]: does the vocabulary fit this text? `vocabulary make` makes one", 100 * share
        )
