"""Tag sets of entities in a spelling that is not read: as plain tags they would lose their entity F1."""

from __future__ import annotations

import re
from collections.abc import Collection

from bert_tf.tasks.cells import doubt

_OUTSIDE = frozenset("O o 0".split())
_NUMBER = re.compile(r"\d+")
_SPELLINGS = (
    (re.compile(r"[bieslum]-.+"), "begin with a small letter: write B-PER and O"),
    (re.compile(r"[BIESLUMbieslum][_:/.|].+"), "have no hyphen: write B-PER"),
    (re.compile(r".+[-_:/.|][BIESLUMbieslum]"), "have the letter at the end: write B-PER"),
)
_BEGINS = re.compile(r"[Bb][^A-Za-z].+|.+[^A-Za-z][Bb]|[Ii][^A-Za-z].+|.+[^A-Za-z][Ii]")


def problem_of(tags: Collection[str]) -> str:
    """Returns what is wrong with the tags of a training file; empty if they may be meant."""
    if tags and all(map(_NUMBER.fullmatch, tags)):
        return (
            f"every tag is a number, as {_some(tags)}: write the names that the numbers stand for (in datasets: feature.names)"
        )
    marks = {tag for tag in tags if tag not in _OUTSIDE}
    for spelling, hint in _SPELLINGS:
        spelled = {tag for tag in marks if spelling.fullmatch(tag)}
        if 2 * len(spelled) >= len(marks) and any(map(_BEGINS.fullmatch, spelled)):
            return f"tags of entities, as {_some(spelled)}, {hint}"
    return next(filter(None, map(doubt, sorted(marks))), "").replace("the label", "the tag")


def _some(tags: Collection[str]) -> str:
    return ", ".join(sorted(tags)[:3])
