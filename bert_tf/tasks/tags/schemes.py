"""Schemes of tags for entities: what the first letter of B-PER says. All become IOB2, in which B begins each entity.

IOB1 has B only where an entity follows another of its type; IOBES and BILOU mark the last word (E or L), and an entity of one
word (S or U). Each can be read without knowing which it is.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

OUTSIDE = "O"
_TAG = re.compile(r"([BIESLU])(-.+)?")
_LIKE = {"L": "E", "U": "S"}  # the same thing in the words of IOBES
_NO_TYPE = "_"  # what seqeval calls the type of B and I alone


def are_of_entities(tags: Iterable[str]) -> bool:
    """Returns whether tags mark entities; else they are plain ones, as parts of speech."""
    marks = {tag for tag in tags if tag != OUTSIDE}
    return bool(marks) and all(map(is_of_entity, marks))


def is_of_entity(tag: str) -> bool:
    """Returns whether a tag is O, or that of a word in an entity."""
    return tag == OUTSIDE or bool(_TAG.fullmatch(tag))


def labels_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Returns the tags of IOB2 for the types of entities that occur: O, and B and I of each type.

    >>> labels_of(["I-PER", "O", "S-LOC"])
    ('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER')
    """
    types = sorted({tag[1:] for tag in tags if tag != OUTSIDE})
    return (OUTSIDE, *(f"{prefix}{rest}" for rest in types for prefix in "BI"))


def type_of(tag: str) -> str:
    """Returns the type of entity of a tag: PER of B-PER; empty of O, and where tags have no type."""
    return tag[2:]


def entities_of(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns type, first word and the word after the last of each entity, as conlleval and seqeval read them.

    >>> entities_of(["I-PER", "I-PER", "O", "B-LOC", "I-PER"])
    [('PER', 0, 2), ('LOC', 3, 4), ('PER', 4, 5)]
    """
    from seqeval.metrics.sequence_labeling import get_entities

    as_iobes = [_LIKE.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    return [("" if type_ == _NO_TYPE else type_, first, last + 1) for type_, first, last in get_entities(as_iobes)]


def to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """Returns the same entities in IOB2.

    >>> to_iob2(["I-PER", "I-PER", "B-PER", "O", "S-LOC"])
    ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC')
    """
    converted = [OUTSIDE] * len(tags)
    for type_, first, end in entities_of(tags):
        rest = f"-{type_}" if type_ else ""
        converted[first:end] = [f"B{rest}", *[f"I{rest}"] * (end - first - 1)]
    return tuple(converted)


@dataclasses.dataclass
class Seen:
    """What has occurred in a file so far, from which follows its scheme.

    Attributes:
      letters: how often each first letter occurred.
      begun_inside: entities that begin with I.
      begun_needlessly: entities that begin with B where IOB1 has I.
      changed: words whose tag is another one in IOB2.
    """

    letters: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    begun_inside: int = 0
    begun_needlessly: int = 0
    changed: int = 0

    def add(self, tags: Sequence[str], converted: Sequence[str]) -> None:
        """Counts a sentence.

        Args:
          tags: as the file has them.
          converted: the same in IOB2.
        """
        self.letters.update(tag[0] for tag in tags)
        self.changed += sum(map(str.__ne__, tags, converted))
        for before, tag, now in zip([OUTSIDE, *tags], tags, converted):
            self.begun_inside += tag[0] == "I" and now[0] == "B"
            self.begun_needlessly += tag[0] == "B" and (before == OUTSIDE or before[1:] != tag[1:])

    @property
    def scheme(self) -> str:
        """Name of the scheme; of IOB1 and IOB2 mixed both names."""
        if self.letters["L"] or self.letters["U"]:
            return "BILOU"
        if self.letters["E"] or self.letters["S"]:
            return "IOBES"
        if not self.begun_inside:
            return "IOB2"
        return "a mixture of IOB1 and IOB2" if self.begun_needlessly else "IOB1"


def labels_of_counts(counts: collections.Counter[str], also: Iterable[str] = ()) -> tuple[str, ...]:
    """Returns the tags that training data has: of entities those of IOB2, of plain ones the most frequent first.

    Args:
      counts: of the tags of words that are trained on; two at least.
      also: tags that other data has.
    """
    found = {*counts, *also}
    if are_of_entities(counts):
        return labels_of(filter(is_of_entity, found))
    (most, _), *_ = counts.most_common(1)
    return (most, *sorted(found - {most}))
