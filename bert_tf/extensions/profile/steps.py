"""Steps to profile."""

from __future__ import annotations

import dataclasses
import re

from bert_tf.errors import FlagError
from bert_tf.io.documents import LARGEST_SETTING


@dataclasses.dataclass(frozen=True)
class StepRange:
    """Steps `first` to `last`, inclusive; the first step of a run is 1."""

    first: int
    last: int

    @classmethod
    def parse(cls, flag: str, text: str) -> StepRange:
        """Parses "20-30", or "20" for a single step; raises FlagError, naming the flag, for anything else."""
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", text.strip())
        if not match:
            raise FlagError(f"--{flag}={text}: expected a step or a range of steps, such as 20 or 20-30")
        first, last = int(match[1]), int(match[2] or match[1])
        if last > LARGEST_SETTING:
            raise FlagError(f"--{flag}={text}: steps count up to {LARGEST_SETTING}")
        if not 1 <= first <= last:
            raise FlagError(f"--{flag}={text}: steps count from 1, and a range must not end before it starts")
        return cls(first, last)
