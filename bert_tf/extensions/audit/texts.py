"""Texts that the model cannot read well: cut, unknown to the vocabulary, or split into too many word pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bert_tf.extensions.audit import findings
from bert_tf.extensions.audit.findings import Finding, Row
from bert_tf.extensions.audit.rows import survey
from bert_tf.tasks.base import Family
from bert_tf.tokenization.characters import words
from bert_tf.tokenization.vocabulary import UNK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

_UNKNOWN = 0.1  # share of [UNK]
_FRAGMENTED = 3.0  # pieces per word; 1.1 to 1.5 is usual
_LEAST_WORDS = 5  # of a text that is judged by its pieces


def unreadable(rows: Sequence[Row], family: Family, tokenizer: WordPieceTokenizer, limit: int) -> Iterator[Finding]:
    """Yields findings; `limit` is the maximum length in word pieces, which cuts texts that are not read in windows."""
    (unknown,) = tokenizer.vocabulary.ids([UNK])
    lengths = survey((row.example for row in rows), tokenizer.ids).lengths
    for row, length in zip(rows, lengths.tolist()):
        text = " ".join(row.texts)
        pieces = tokenizer.ids(text)
        unknown_share = pieces.count(unknown) / max(len(pieces), 1)
        word_count = len(words(text, tokenizer.rules))
        if length > limit and not family.trains_on_windows:
            yield Finding(findings.TRUNCATED, limit / length, row)
        if unknown_share >= _UNKNOWN:
            yield Finding(findings.UNKNOWN, unknown_share, row)
        if word_count >= _LEAST_WORDS and len(pieces) >= _FRAGMENTED * word_count:
            yield Finding(findings.FRAGMENTED, len(pieces) / word_count, row)
