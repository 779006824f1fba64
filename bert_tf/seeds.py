"""Several seeds as a setting: numbers and ranges, or a list."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

from bert_tf.errors import FlagError
from bert_tf.io.documents import LARGEST_SETTING

_MOST = 1000


def seed_numbers(text: str) -> tuple[int, ...]:
    """Parses --seeds, such as 1,3,7-9; FlagError for duplicates, too many or too large numbers."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= LARGEST_SETTING:
            known = f"numbers up to {LARGEST_SETTING} with commas, or 1-5"
            raise FlagError(f"--seeds={text}: {part!r} is not a seed; write {known}")
        if len(seeds) + last - first >= _MOST:
            raise FlagError(f"--seeds={text}: more than {_MOST} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise FlagError(f"--seeds={text}: a seed is named twice")
    return tuple(seeds)


def seeds_text(seeds: str | Iterable[int]) -> str:
    """Returns seeds in the flag's form, 1,2 for [1, 2]; raises FlagError if they are not integers."""
    if isinstance(seeds, str):
        return seeds
    try:
        numbers = [operator.index(seed) for seed in seeds]
    except TypeError as error:
        raise FlagError(f"seeds={seeds!r:.80}: give a list of integers, or a string such as '1-5'") from error
    if not numbers:
        raise FlagError(f"seeds={seeds!r:.80}: give at least one")
    return ",".join(map(str, numbers))
