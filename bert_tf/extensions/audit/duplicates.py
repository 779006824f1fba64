"""Duplicates, near duplicates, leaks and outliers. Shapes: N rows."""

from __future__ import annotations

import collections
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.audit import findings
from bert_tf.extensions.audit.findings import Finding, Row
from bert_tf.extensions.audit.rows import comparable_label

Floats = npt.NDArray[np.floating[Any]]
Key = tuple[str, str]

OVERLAP = 0.65  # of words or letters: a changed word of five leaves 4/6, other sentences rarely reach 0.6
_SHORT = 12  # letters, below which one word or letter makes another text: "a thriller", "no thriller"
_BLOCK = 1 << 24  # pairs of rows that are compared at once
_NEIGHBOURS = 10
_FAR = 3.0  # robust standard deviations below the median cosine of neighbours
_ROBUST = 1.4826
_EMOJI = 0x1F000  # from here on modifiers and formats are parts of emoji: skin tones, flags


class _Blanks(dict[int, str]):
    """A blank for each character that does not count, else the character, by code point, for `str.translate`."""

    def __missing__(self, point: int) -> str:
        category, is_variant = unicodedata.category(chr(point)), 0xFE00 <= point <= 0xFE0F  # text or picture
        is_blank = category[0] in "PZ" or category in ("Cc", "Cf", "Sk") or is_variant  # Sk: accents and ` as quotes
        self[point] = " " if is_blank and point < _EMOJI else chr(point)
        return self[point]


_BLANKS = _Blanks()


def normalized(text: str) -> str:
    """Without case, punctuation, compatibility forms and differences of white space, but with vowel signs and emoji.

    A text without letters and digits stays, as ":-)".
    """
    folded = unicodedata.normalize("NFKC", text.translate(_BLANKS)).casefold().translate(_BLANKS)  # NFKC may bring some
    if any(map(str.isalnum, folded)):
        return " ".join(folded.split())
    return unicodedata.normalize("NFKC", text).casefold().strip()


def keys(rows: Sequence[Row]) -> list[Key]:
    return [(normalized(row.text), normalized(row.text_b)) for row in rows]


def firsts(by_row: Sequence[Key]) -> list[int]:
    """Numbers of the first rows of each key."""
    return sorted({key: number for number, key in reversed(list(enumerate(by_row)))}.values())


def exact(rows: Sequence[Row], by_row: Sequence[Key]) -> Iterator[Finding]:
    """Rows with the same normalized texts: leaks, contradictory labels, duplicates within a split."""
    groups: dict[Key, list[Row]] = {}
    for row, key in zip(rows, by_row):
        groups.setdefault(key, []).append(row)
    for group in groups.values():
        elsewhere = next((row for row in group if not row.is_train), None)
        of_splits: dict[str, Row] = {}  # the first of each
        for row in group:
            if row.is_train and elsewhere is not None:
                yield Finding(findings.LEAK, 1.0, row, other=elsewhere)
            first = of_splits.setdefault(row.split, row)
            reference = group[0] if first is row else first
            label, other = comparable_label(row.example), comparable_label(reference.example)
            if None not in (label, other) and label != other:
                yield Finding(findings.CONTRADICTION, 1.0, row, other=reference)
            elif first is not row:
                yield Finding(findings.DUPLICATE, 1.0, row, other=first)


def seconds(rows: int) -> float:
    """Estimates the time of `near`: 8,000 rows of 20 words took ten seconds on two cores (docs/tasks.md)."""
    return 10.0 * (rows / 8_000) ** 2


def near(rows: Sequence[Row], by_row: Sequence[Key], least: float) -> Iterator[Finding]:
    """Pairs of different texts that share enough: each row, with the earlier one that it shares most with.

    Rows of dev and test are before training rows, each of which so has the one of these that it shares most with, too: a leak.
    """
    order = sorted(range(len(rows)), key=lambda number: rows[number].is_train)
    numbers = [order[place] for place in firsts([by_row[number] for number in order])]
    is_train = np.array([rows[number].is_train for number in numbers], bool)
    for earlier, later, share in similar([by_row[number] for number in numbers], least, is_train):
        row, other = rows[numbers[later]], rows[numbers[earlier]]
        is_leak = row.is_train and not other.is_train
        yield Finding(findings.NEAR_LEAK if is_leak else findings.NEAR_DUPLICATE, share, row, other=other)


def similar(texts: Sequence[Key], least: float, groups: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, float]]:
    """Yields (earlier row, row, what they share) for the earlier row of each group [N] that a row shares most with.

    They share at least `least` in each of their two texts; of equals the last is named. Shared is the Jaccard index of the
    words, counted, or of the sets of three letters; the larger one. Short texts share all or nothing.
    """
    differing = [side for side in zip(*texts) if len(set(side)) > 1]  # not the second texts of tasks without any
    if not differing:
        return
    sides = [[_bags(side, split) for split in (_words, _trigrams)] for side in differing]
    step = max(_BLOCK // max(len(texts), 1), 1)
    best, with_row = np.zeros([2, len(texts)], np.float32), np.zeros([2, len(texts)], np.int64)
    for start in range(0, len(texts), step):
        part = slice(start, start + step)
        shares = np.min([np.max([_jaccard(bags, part) for bags in side], axis=0) for side in sides], axis=0)
        shares = np.triu(shares, start + 1)  # 0 for rows that are not earlier
        for group in (0, 1):
            earlier = np.flatnonzero(groups[part] == group)[::-1]
            if len(earlier):
                of_group = shares[earlier]
                first = of_group.argmax(axis=0)
                shared = of_group[first, np.arange(len(texts))]
                better = shared >= best[group]  # of equals the last
                best[group, better], with_row[group, better] = shared[better], start + earlier[first[better]]
    for row, group in np.argwhere(least <= best.T).tolist():
        yield int(with_row[group, row]), row, float(best[group, row])


def _words(text: str) -> set[str]:
    return {f"{word} {n}" for word, times in collections.Counter(text.split()).items() for n in range(times)}


def _trigrams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _bags(texts: Sequence[str], split: Callable[[str], set[str]]) -> Any:
    """Parts of each text, as a sparse matrix [N, different parts]; a short text is one part."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=lambda text: split(text) if len(text) >= _SHORT else {text}, dtype=np.float32)
    return vectorizer.fit_transform(texts)


def _jaccard(bags: Any, part: slice) -> Floats:
    """Returns [part, N]."""
    sizes = np.asarray(bags.sum(axis=1))
    shared = (bags[part] @ bags.T).toarray()
    return np.asarray(shared / (sizes[part] + sizes.T - shared))


def outliers(rows: Sequence[Row], by_row: Sequence[Key], vectors: Floats) -> Iterator[Finding]:
    """Rows that are unlike all others by their vectors [N, ...]; equal texts count once."""
    from sklearn.neighbors import NearestNeighbors

    numbers = firsts(by_row)
    if len(numbers) > 2 * _NEIGHBOURS:
        points = vectors[numbers].reshape(len(numbers), -1)
        distances, _ = NearestNeighbors(n_neighbors=_NEIGHBOURS + 1, metric="cosine").fit(points).kneighbors(points)
        cosines = 1.0 - distances[:, 1:].mean(axis=1)
        centre = np.median(cosines)
        limit = centre - _FAR * _ROBUST * np.median(np.abs(cosines - centre))
        for index in np.flatnonzero(cosines < limit):
            yield Finding(findings.OUTLIER, float(cosines[index]), rows[numbers[index]])
