"""Duplicates, near duplicates, leaks and outliers. Shapes: N rows, D numbers of a vector."""

from __future__ import annotations

import collections
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.audit import findings
from bert_tf.audit.findings import Finding, Row

Floats = npt.NDArray[np.floating[Any]]
Key = tuple[str, str]

OVERLAP = 0.65  # of words or letters: a changed word of six leaves 5/7, other sentences rarely reach 0.6
_COSINE = 0.4  # low, since one word can turn a short text around; only sorts out what shares mere function words
_NEIGHBOURS = 10
_FAR = 3.0  # robust standard deviations below the median cosine of neighbours
_ROBUST = 1.4826
_SYMBOLS = re.compile(r"[\W_]+")


def normalized(text: str) -> str:
    """Without case, punctuation, compatibility forms and differences of white space; a text of symbols stays."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SYMBOLS.sub(" ", folded).strip() or folded.strip()


def overlap(one: str, other: str) -> float:
    """Jaccard index of the words, counted, or of the sets of three letters; the larger one. Of normalized texts."""
    words, others = collections.Counter(one.split()), collections.Counter(other.split())
    of_words = sum((words & others).values()) / max(sum((words | others).values()), 1)
    letters, of_other = _trigrams(one), _trigrams(other)
    return max(of_words, len(letters & of_other) / max(len(letters | of_other), 1))


def _trigrams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[place : place + 3] for place in range(len(padded) - 2)}


def keys(rows: Sequence[Row]) -> list[Key]:
    return [(normalized(row.text), normalized(row.text_b)) for row in rows]


def exact(rows: Sequence[Row], by_row: Sequence[Key]) -> Iterator[Finding]:
    """Rows with the same normalized texts: leaks, contradictory labels, duplicates within a split."""
    groups: dict[Key, list[Row]] = {}
    for row, key in zip(rows, by_row):
        groups.setdefault(key, []).append(row)
    for group in groups.values():
        elsewhere = next((row for row in group if not row.is_train), None)
        firsts: dict[str, Row] = {}
        for row in group:
            if row.is_train and elsewhere is not None:
                yield Finding(findings.LEAK, 1.0, row, other=elsewhere.name)
            first = firsts.setdefault(row.split, row)
            reference = group[0] if first is row else first
            if _contradict(row.example.label, reference.example.label):
                yield Finding(findings.CONTRADICTION, 1.0, row, other=reference.name)
            elif first is not row:
                yield Finding(findings.DUPLICATE, 1.0, row, other=first.name)


def _contradict(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    return set(one) != set(other) if isinstance(one, tuple) and isinstance(other, tuple) else bool(one != other)


def by_vectors(rows: Sequence[Row], by_row: Sequence[Key], vectors: Floats, least: float) -> Iterator[Finding]:
    """Near duplicates and outliers, among the first rows of each text; `vectors` [N, D] have length 1."""
    from sklearn.neighbors import NearestNeighbors

    first = np.array(sorted({key: place for place, key in reversed(list(enumerate(by_row)))}.values()))
    count = min(_NEIGHBOURS + 1, len(first))
    if count < 2:
        return
    distances, found = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(vectors[first]).kneighbors(vectors[first])
    cosines = 1.0 - np.square(distances) / 2.0
    yield from _near(rows, by_row, first[found], first, cosines, least)
    if len(first) > 2 * _NEIGHBOURS:
        yield from _outliers(rows, first, cosines[:, 1:].mean(axis=1))


def _near(
    rows: Sequence[Row], by_row: Sequence[Key], found: npt.NDArray[Any], first: npt.NDArray[Any], cosines: Floats, least: float
) -> Iterator[Finding]:
    """Reports each row once, with the earlier one that it shares most with."""
    best: dict[tuple[int, bool], tuple[float, int]] = {}  # by the later row, and whether the pair is a leak
    pairs = {
        (min(one, other), max(one, other))
        for one, others, of_row in zip(first.tolist(), found.tolist(), cosines)
        for other, cosine in zip(others, of_row)
        if one != other and cosine >= _COSINE
    }
    for one, other in sorted(pairs):
        share = min(overlap(*texts) for texts in zip(by_row[one], by_row[other]) if any(texts))
        is_leak = rows[one].is_train and not rows[other].is_train
        if share >= least and share > best.get((other, is_leak), (0.0, 0))[0]:
            best[other, is_leak] = share, one
    for (other, is_leak), (share, one) in best.items():
        if is_leak:
            yield Finding(findings.NEAR_LEAK, share, rows[one], other=rows[other].name)
        else:
            yield Finding(findings.NEAR_DUPLICATE, share, rows[other], other=rows[one].name)


def _outliers(rows: Sequence[Row], first: npt.NDArray[Any], cosines: Floats) -> Iterator[Finding]:
    centre = np.median(cosines)
    limit = centre - _FAR * _ROBUST * np.median(np.abs(cosines - centre))
    for place in np.flatnonzero(cosines < limit):
        yield Finding(findings.OUTLIER, float(cosines[place]), rows[first[place]])
