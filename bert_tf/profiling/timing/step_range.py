"""A range of steps, as a flag names it."""

from __future__ import annotations

import dataclasses
import re

from bert_tf.documents import LARGEST_SETTING
from bert_tf.errors import FlagError


@dataclasses.dataclass(frozen=True)
class StepRange:
    """Steps from `first` to `last`, both of them; the first of a run is 1."""

    first: int
    last: int

    @classmethod
    def parse(cls, flag: str, text: str) -> StepRange:
        """Reads 20-30, or 20 for that step alone.

        Args:
          flag: its name, for messages.
          text: its value.

        Raises:
          FlagError: it is something else.
        """
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", text.strip())
        if not match:
            raise FlagError(f"--{flag}={text}: is a step or a range of steps, 20 or 20-30")
        first, last = int(match[1]), int(match[2] or match[1])
        if last > LARGEST_SETTING:
            raise FlagError(f"--{flag}={text}: steps count up to {LARGEST_SETTING}")
        if not 1 <= first <= last:
            raise FlagError(f"--{flag}={text}: steps count from 1, the last of a range is not before the first")
        return cls(first, last)
