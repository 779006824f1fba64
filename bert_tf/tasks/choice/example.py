"""Example of multiple choice: a question and its options."""

from __future__ import annotations

import dataclasses
import re

_BLANK = re.compile("_+")


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    guid: str
    context: str  # what is read before the question: a passage, a sentence
    question: str  # may have a blank, `_`, that the options fill; else they follow it. May be empty, as the context may
    options: tuple[str, ...]
    label: int | None = None  # number of the right option, from 0; None where it is to be predicted

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.context, self.question, *self.options)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Two texts per option: the context, and the question with the option inserted."""
        before, after = self.around
        return [(self.context, " ".join(filter(None, (before, option, after)))) for option in self.options]

    @property
    def around(self) -> tuple[str, str]:
        """Text before and after the option: the parts of a question with one blank, otherwise the whole question and ""."""
        parts = _BLANK.split(self.question)
        return (parts[0], parts[1]) if len(parts) == 2 else (self.question, "")
