"""Word counts of text files, on all cores, and what is printed of words."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bert_tf.corpus import documents, processes
from bert_tf.corpus.documents import Corpus, Piece
from bert_tf.corpus.settings import CorpusSettings
from bert_tf.errors import DataError
from bert_tf.log_form import log
from bert_tf.text_table import counted, table
from bert_tf.tokenization import counting
from bert_tf.tokenization.counting import Chunks, Counts
from bert_tf.tokenization.fertility import Fertility

_ALONE = 1 << 27  # bytes that are counted before other processes have started
_HEAD = ("", "words", "pieces", "pieces a word", "cut", "[UNK]", "tokens a sentence")
_NOTES = 5  # shown at most


def count(patterns: Sequence[str], form: CorpusSettings, *, lower_case: bool) -> Counts:
    """Counts words, reading each file once; independent of the number of cores.

    `patterns` are files, `glob` patterns or `-` (standard input), also comma-separated.
    """
    corpus = form.corpus(documents.find(",".join(patterns)))
    parts = processes.mapped(functools.partial(_chunks, corpus), documents.pieces(corpus), workers=_workers(corpus))
    found = counting.count(parts, lower_case=lower_case)
    if not found.words:
        raise DataError("no word in the text", ", ".join(corpus.files)[:200])
    log.info("%s, %d different, in %s", counted(found.total, "word"), len(found.words), counted(found.texts, "sentence"))
    return found


def _chunks(corpus: Corpus, piece: Piece) -> Chunks:
    return counting.chunks(documents.parse(piece, corpus).sentences)


def _workers(corpus: Corpus) -> int:
    known = corpus.can_be_read_again and sum(os.path.getsize(path) for path in corpus.files if os.path.isfile(path)) < _ALONE
    return 1 if known else processes.cores()


def fertility_lines(found: Mapping[str, Fertility]) -> Iterator[str]:
    yield from table(_HEAD, [(name, *_cells(one)) for name, one in found.items()])


def _cells(found: Fertility) -> Sequence[str]:
    shares = (f"{100 * share:.2f} %" for share in (found.cut_share, found.unknown_share))
    counts = (f"{number:,}" for number in (found.words, found.pieces))
    return *counts, f"{found.pieces_a_word:.4f}", *shares, f"{found.tokens_a_sentence:.2f}"


def shown(words: Iterable[str], most: int = 20) -> str:
    every = list(words)
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def warn(notes: Sequence[str]) -> None:
    for note in notes[:_NOTES]:
        log.warning("%s", note)
    if len(notes) > _NOTES:
        log.warning("... and %d more", len(notes) - _NOTES)
