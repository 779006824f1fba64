"""Formats texts and words for the vocabulary command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bert_tf.log_form import log
from bert_tf.text_table import table
from bert_tf.tokenization.fertility import Fertility

_HEAD = ("", "words", "pieces", "pieces a word", "cut", "[UNK]", "tokens a sentence")
_SHOWN = 5


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
    for note in notes[:_SHOWN]:
        log.warning("%s", note)
    if len(notes) > _SHOWN:
        log.warning("... and %d more", len(notes) - _SHOWN)
