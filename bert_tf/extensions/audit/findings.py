"""Findings of an audit, and the table that holds them."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bert_tf.io import spreadsheets
from bert_tf.tasks.base import Example

# Kinds of findings, in the order of the table, and the meaning of their scores.
LABEL, CONTRADICTION, LEAK, NEAR_LEAK = "label_error", "contradiction", "leak", "near_leak"
DUPLICATE, NEAR_DUPLICATE, OUTLIER = "duplicate", "near_duplicate", "outlier"
TRUNCATED, UNKNOWN, FRAGMENTED = "truncated", "unknown_words", "fragmented"
KINDS = {
    LABEL: "probability of the label, estimated without this row; of numbers, the usual error relative to this one",
    CONTRADICTION: "1: same text, another label",
    LEAK: "1: same text in dev or test",
    NEAR_LEAK: "shared words or letters with a row of dev or test",
    DUPLICATE: "1: same text",
    NEAR_DUPLICATE: "shared words or letters",
    OUTLIER: "mean cosine to the nearest rows",
    TRUNCATED: "share of the word pieces that is kept",
    UNKNOWN: "share of [UNK] in the word pieces",
    FRAGMENTED: "word pieces per word",
}
EXCLUDE, RELABEL = "exclude", "relabel"  # as the extension corrections reads them
_ACTIONS = {LABEL: RELABEL, LEAK: EXCLUDE, DUPLICATE: EXCLUDE}  # prefilled for training rows; the others are for a person
NEAR = {NEAR_LEAK, NEAR_DUPLICATE}  # the texts of both rows differ
_ASCENDING = {LABEL, OUTLIER, TRUNCATED}  # the lowest score is the worst
COLUMNS = ("split", "id", "problem", "score", "label", "suggested", "action", "other", "text", "text_b")


class Row(NamedTuple):
    """An example of a split, and its texts: two, the second of which may be empty."""

    split: str
    is_train: bool
    example: Example
    text: str
    text_b: str

    @property
    def name(self) -> str:
        return f"{self.split}:{self.example.guid}"

    @property
    def texts(self) -> tuple[str, str]:
        return self.text, self.text_b


class Finding(NamedTuple):
    problem: str  # of KINDS
    score: float
    row: Row
    suggested: str | None = None  # label; empty for none
    other: Row | None = None  # the row that this one repeats, contradicts or leaks into

    def cells(self, separator: str) -> tuple[str, ...]:
        action = _ACTIONS.get(self.problem, "") if self.row.is_train else ""
        action = "" if action == RELABEL and self.suggested is None else action
        split, _, example, *texts = self.row
        label = label_text(example.label, separator)
        other = self.other.name if self.other else ""
        return (split, example.guid, self.problem, f"{self.score:.4f}", label, self.suggested or "", action, other, *texts)


def row_of(split: str, example: Example, *, is_train: bool) -> Row:
    """Joins the texts of an example from the second one on, such as the options of a question."""
    first, *rest = example.texts
    return Row(split, is_train, example, first, " ".join(filter(None, rest)))


def label_text(label: Any, separator: str) -> str:
    if isinstance(label, tuple):
        return separator.join(map(str, label))
    return "" if label is None else f"{label:g}" if isinstance(label, float) else str(label)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """By kind, then the worst first."""
    ranks = {kind: rank for rank, kind in enumerate(KINDS)}
    return sorted(
        findings,
        key=lambda finding: (ranks[finding.problem], finding.score if finding.problem in _ASCENDING else -finding.score),
    )


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Number of findings by kind."""
    numbers = collections.Counter(finding.problem for finding in findings)
    return {kind: numbers[kind] for kind in KINDS}


def table(findings: Sequence[Finding], separator: str) -> str:
    return spreadsheets.csv_of([COLUMNS, *(finding.cells(separator) for finding in findings)])
