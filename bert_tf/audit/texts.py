"""Word pieces of texts: lengths, and rows that are cut, unknown to the vocabulary or badly split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bert_tf.audit import findings
from bert_tf.audit.findings import Finding, Row
from bert_tf.tasks.survey import survey
from bert_tf.tokenization.vocabulary import UNK
from bert_tf.tokenization.wordpiece import WordPieceTokenizer, words

Summary = tuple[tuple[str, ...], ...]

_UNKNOWN = 0.1  # share of [UNK]
_FRAGMENTED = 3.0  # pieces per word; 1.1 to 1.5 is usual
_LEAST_WORDS = 5  # of a text that is judged by its pieces


def judged(rows: Sequence[Row], tokenizer: WordPieceTokenizer, limit: int) -> tuple[list[Finding], Summary]:
    """Returns findings, and a line of the summary for each split; `limit` is the maximum length."""
    results: list[Finding] = []
    lines = [("split", "rows", "mean length", "longest", f"over {limit}", "pieces a word", "[UNK]")]
    for split in dict.fromkeys(row.split for row in rows):
        of_split = [row for row in rows if row.split == split]
        counts = survey((row.example for row in of_split), lambda text: len(tokenizer.ids(text)))
        lengths, pieces = counts.lengths, [_Pieces(row, tokenizer) for row in of_split]
        sizes = (f"{counts.rows:,}", f"{lengths.mean():.1f}", str(lengths.max()), f"{counts.truncated(limit):.1%}")
        total = max(sum(one.count for one in pieces), 1)
        per_word = total / max(sum(one.words for one in pieces), 1)
        lines.append((split, *sizes, f"{per_word:.2f}", f"{sum(one.unknown for one in pieces) / total:.2%}"))
        for row, length, one in zip(of_split, lengths.tolist(), pieces):
            if length > limit:
                results.append(Finding(findings.TRUNCATED, limit / length, row))
            results += one.findings(row)
    return results, tuple(lines)


class _Pieces:
    """Word pieces of a row's texts."""

    def __init__(self, row: Row, tokenizer: WordPieceTokenizer) -> None:
        ids = tokenizer.ids(" ".join(row.texts))
        self.count, self.unknown = len(ids), ids.count(tokenizer.vocabulary.ids([UNK])[0])
        self.words = sum(1 for text in row.texts for _ in words(text, lower_case=tokenizer.lower_case))

    def findings(self, row: Row) -> Iterator[Finding]:
        if self.unknown >= max(_UNKNOWN * self.count, 1):
            yield Finding(findings.UNKNOWN, self.unknown / self.count, row)
        if self.words >= _LEAST_WORDS and self.count >= _FRAGMENTED * self.words:
            yield Finding(findings.FRAGMENTED, self.count / self.words, row)
