"""Word counts of text files, on all cores."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.corpus import documents, processes
from bert_tf.corpus.documents import Corpus, Piece
from bert_tf.corpus.settings import FORM, CorpusSettings
from bert_tf.errors import DataError
from bert_tf.log_form import log
from bert_tf.text_table import counted
from bert_tf.tokenization import counting
from bert_tf.tokenization.counting import Chunks, Counts

_ALONE = 1 << 27  # bytes that are counted before other processes have started


def count(patterns: Sequence[str], settings: Mapping[str, Any], *, lower_case: bool) -> Counts:
    """Counts words, reading each file once; independent of the number of cores.

    `patterns` are files, `glob` patterns or `-` (standard input), also comma-separated; `settings` has the keys of
    `FORM`.
    """
    corpus = CorpusSettings(**{name: settings[name] for name in FORM}).corpus(documents.find(",".join(patterns)))
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
