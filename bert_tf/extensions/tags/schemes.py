"""Tag schemes of entities: the first letter of B-PER. Training converts all to IOB2, in which B begins each entity.

A model from elsewhere is read and measured in the scheme of its labels. IOB1 has B only if an entity follows another of its
type; IOBES, BMES and BILOU mark the last word (E or L), and an entity of one word (S or U); BMES has M for I. Each can be read
without knowing which it is.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.tasks.cells import doubt

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

OUTSIDE = "O"
_TAG = re.compile(r"([BIESLUM])(-.+)?")
_LIKE = {"L": "E", "U": "S", "M": "I"}  # IOBES equivalents
_PAIRS = 1 << 21  # tag pairs compared at a time, over all sentences decoded together
_SPELLINGS_OF_OUTSIDE = frozenset("O o 0".split())
_NUMBER = re.compile(r"\d+")
_SPELLINGS = (
    (re.compile(r"[bieslum]-.+"), "begin with a small letter: write B-PER and O"),
    (re.compile(r"[BIESLUMbieslum][_:/.|].+"), "have no hyphen: write B-PER"),
    (re.compile(r".+[-_:/.|][BIESLUMbieslum]"), "have the letter at the end: write B-PER"),
)
_BEGINS = re.compile(r"[Bb][^A-Za-z].+|.+[^A-Za-z][Bb]|[Ii][^A-Za-z].+|.+[^A-Za-z][Ii]")


def are_of_entities(tags: Iterable[str]) -> bool:
    """Whether tags mark entities; otherwise they are plain, such as parts of speech."""
    marks = {tag for tag in tags if tag != OUTSIDE}
    return bool(marks) and all(map(is_of_entity, marks))


def is_of_entity(tag: str) -> bool:
    """Whether a tag is O, or that of a word in an entity."""
    return tag == OUTSIDE or bool(_TAG.fullmatch(tag))


def labels_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Returns the IOB2 tags of the entity types that occur: O, and B and I of each type.

    >>> labels_of(["I-PER", "O", "S-LOC"])
    ('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER')
    """
    types = sorted({tag[1:] for tag in tags if tag != OUTSIDE})
    return (OUTSIDE, *(f"{prefix}{rest}" for rest in types for prefix in "BI"))


def type_of(tag: str) -> str:
    """Returns the entity type of a tag: PER for B-PER; empty for O and for tags without a type."""
    return tag[2:]


def entities_of(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns type, first word and end (exclusive) of each entity, as conlleval (of CoNLL-2000) and seqeval read them.

    >>> entities_of(["I-PER", "I-PER", "O", "B-LOC", "I-PER"])
    [('PER', 0, 2), ('LOC', 3, 4), ('PER', 4, 5)]
    """
    entities: list[tuple[str, int, int]] = []
    first, before = None, OUTSIDE
    for number, original in enumerate([*tags, OUTSIDE]):
        tag = _LIKE.get(original[0], original[0]) + original[1:]
        goes_on = before[0] in "BI" and tag[0] in "IE" and type_of(tag) == type_of(before)
        if first is not None and not goes_on:
            entities.append((type_of(before), first, number))
            first = None
        if tag[0] != OUTSIDE and not goes_on:
            first = number
        before = tag
    return entities


def to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """Converts tags to IOB2.

    >>> to_iob2(["I-PER", "I-PER", "B-PER", "O", "S-LOC"])
    ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC')
    """
    converted = [OUTSIDE] * len(tags)
    for type_, first, end in entities_of(tags):
        rest = f"-{type_}" if type_ else ""
        converted[first:end] = [f"B{rest}", *[f"I{rest}"] * (end - first - 1)]
    return tuple(converted)


def in_scheme_of(labels: Collection[str], tags: Sequence[str]) -> tuple[str, ...]:
    """Converts tags to the scheme that the labels of a model are in; a tag that they lack stays in IOB2.

    >>> in_scheme_of(["O", "B-PER", "I-PER", "E-PER", "S-PER"], ["I-PER", "I-PER", "B-PER", "O"])
    ('B-PER', 'E-PER', 'S-PER', 'O')
    """
    known, begins_inside = _known(tuple(labels))
    converted, of_iob2 = [], to_iob2(tags)
    for before, tag, after in zip((OUTSIDE, *of_iob2), of_iob2, (*of_iob2[1:], OUTSIDE)):
        ends = after != f"I{tag[1:]}"
        letters = {"B": "SUB" if ends else "B", "I": "ELIM" if ends else "IM"}.get(tag[0], tag[0])
        if begins_inside and tag[0] == "B":
            letters = "BI" if before[1:] == tag[1:] and before != OUTSIDE else "I"
        converted.append(next((spelled for letter in letters if (spelled := letter + tag[1:]) in known), tag))
    return tuple(converted)


def with_ends(labels: Iterable[str]) -> frozenset[str]:
    """Returns the entity types whose last word is marked, by E or L."""
    return frozenset(type_of(label) for label in labels if label[0] in "EL")


def are_in_iob1(labels: Collection[str]) -> bool:
    """Whether some type begins with I: it has no other tag to begin with."""
    return _known(tuple(labels))[1]


@functools.lru_cache(maxsize=16)
def _known(labels: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    """The labels of a model, and whether they are in IOB1."""
    known = frozenset(labels)
    return known, any(tag[0] == "I" and known.isdisjoint(f"{letter}{tag[1:]}" for letter in "BSU") for tag in labels)


@dataclasses.dataclass
class Seen:
    """Counts of a file that determine its scheme."""

    letters: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)  # count of each first letter
    begun_inside: int = 0  # entities that begin with I
    begun_needlessly: int = 0  # entities that begin with B; IOB1 has I
    changed: int = 0  # words whose tag differs in IOB2

    def add(self, tags: Sequence[str], converted: Sequence[str]) -> None:
        self.letters.update(tag[0] for tag in tags)
        self.changed += sum(map(str.__ne__, tags, converted))
        for before, tag, now in zip([OUTSIDE, *tags], tags, converted):
            self.begun_inside += tag[0] == "I" and now[0] == "B"
            self.begun_needlessly += tag[0] == "B" and (before == OUTSIDE or before[1:] != tag[1:])

    @property
    def scheme(self) -> str:
        """Name of the scheme; both names if IOB1 and IOB2 are mixed."""
        if self.letters["M"]:
            return "BMES"
        if self.letters["L"] or self.letters["U"]:
            return "BILOU"
        if self.letters["E"] or self.letters["S"]:
            return "IOBES"
        if not self.begun_inside:
            return "IOB2"
        return "a mixture of IOB1 and IOB2" if self.begun_needlessly else "IOB1"


def labels_of_counts(counts: collections.Counter[str], also: Iterable[str] = ()) -> tuple[str, ...]:
    """Returns the tags of training data (at least two) and `also`: entities in IOB2, plain tags most frequent first.

    A few other tags among those of entities are mistakes.
    """
    all_tags = {*counts, *also}
    # No tag of another kind has a type, as B-PER and I-PER have.
    begin_entities = any(tag[:2] in ("B-", "I-") and type_of(tag) for tag in counts)
    if are_of_entities(counts) or begin_entities:
        return labels_of(filter(is_of_entity, all_tags))
    (most, _), *_ = counts.most_common(1)
    return (most, *sorted(all_tags - {most}))


class Legal(NamedTuple):
    """Valid tag sequences."""

    first: npt.NDArray[np.bool_]  # [L] tag may begin a sentence
    after: npt.NDArray[np.bool_]  # [L, L] tag of a column may follow that of a row
    last: npt.NDArray[np.bool_]  # [L] tag may end a sentence


def legal_of(labels: Sequence[str]) -> Legal:
    """Valid sequences: tags within an entity follow B, I or M of its type, others any tag; in IOB1 each tag follows any.

    An entity of a type with E or L ends with it.
    """
    begins_inside, ended = are_in_iob1(labels), with_ends(labels)
    inside = np.array([label[0] in "IELM" and not begins_inside for label in labels])
    ends = np.array([label[0] not in "BIM" or type_of(label) not in ended for label in labels])
    same = np.array([[before[0] in "BIM" and before[1:] == label[1:] for label in labels] for before in labels])
    goes_on = same & np.array([label[0] in "IELM" for label in labels])  # the entity of the tag before it
    return Legal(~inside, np.where(inside, same, ends[:, None] | goes_on), ends)


def is_illegal(tags: Ints, lengths: Ints, legal: Legal) -> npt.NDArray[np.bool_]:
    """Returns [W] whether a tag is invalid in its position; tags [W], lengths [E] words per sentence."""
    first = np.zeros(len(tags), np.bool_)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    before = np.roll(tags, 1)
    last = np.roll(first, -1)
    illegal: npt.NDArray[np.bool_] = ~np.where(first, legal.first[tags], legal.after[before, tags]) | last & ~legal.last[tags]
    return illegal


def viterbi(scores: Floats, lengths: Ints, legal: Legal) -> Ints:
    """Returns [W] valid tags with the highest score sum per sentence; of ties, the first.

    scores [W, L] of all concatenated sentences are log-probabilities or logits; lengths [E] are words per sentence.
    """
    decoded = np.empty(len(scores), np.int64)
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    together = max(1, _PAIRS // scores.shape[1] ** 2)
    for at in range(0, len(order), together):
        batch = order[at : at + together]
        _decode(decoded, scores, starts[batch], lengths[batch], legal)
    return decoded


def _decode(decoded: Ints, scores: Floats, starts: Ints, lengths: Ints, legal: Legal) -> None:
    """Decodes some sentences, longest first, into their positions in `decoded`."""
    never = np.where(legal.after, 0.0, -np.inf)  # [L, L]
    lengths = lengths[lengths > 0]
    active = [int(np.searchsorted(-lengths, -position, side="left")) for position in range(lengths[0] if len(lengths) else 0)]
    best, came = np.empty((0, scores.shape[1])), []
    for position, count in enumerate(active):
        here = scores[starts[:count] + position].astype(np.float64)  # [A, L]
        if not position:
            best = here + np.where(legal.first, 0.0, -np.inf)
            continue
        through = best[:count, :, None] + never  # [A, L, L]
        came.append(through.argmax(axis=1))  # [A, L] the tag before
        best = np.concatenate([through.max(axis=1) + here, best[count:]])
    tags = (best + np.where(legal.last, 0.0, -np.inf)).argmax(axis=1)  # [A] of the last word of each
    for position in reversed(range(len(active))):
        count = active[position]
        decoded[starts[:count] + position] = tags[:count]
        if position:
            tags[:count] = came[position - 1][np.arange(count), tags[:count]]


def problem_of(tags: Collection[str]) -> str:
    """Returns what is wrong with the tags of a training file; empty if they may be meant."""
    if tags and all(map(_NUMBER.fullmatch, tags)):
        return (
            f"every tag is a number, as {_some(tags)}: write the names that the numbers stand for (in datasets: feature.names)"
        )
    marks = {tag for tag in tags if tag not in _SPELLINGS_OF_OUTSIDE}
    for spelling, hint in _SPELLINGS:
        spelled = {tag for tag in marks if spelling.fullmatch(tag)}
        if 2 * len(spelled) >= len(marks) and any(map(_BEGINS.fullmatch, spelled)):
            return f"tags of entities, as {_some(spelled)}, {hint}"
    return next(filter(None, map(doubt, sorted(marks))), "").replace("the label", "the tag")


def _some(tags: Collection[str]) -> str:
    return ", ".join(sorted(tags)[:3])
