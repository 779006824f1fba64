"""A question about a text, and its answers."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Answer(NamedTuple):
    """A reference answer."""

    text: str  # as in the context
    start: int  # first character; -1 if unknown and not unique


@dataclasses.dataclass(frozen=True)
class SpanExample:
    guid: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None = None  # the first is learned; empty for no answer, None where it is to be predicted
    title: str = ""  # of the article, whose questions are not independent of each other

    @property
    def label(self) -> tuple[str, ...] | None:
        """Distinct texts of the answers."""
        return None if self.answers is None else tuple(dict.fromkeys(answer.text for answer in self.answers))

    @property
    def texts(self) -> tuple[str, ...]:
        return self.question, self.context

    @property
    def is_misplaced(self) -> bool:
        """Whether the first answer, the one to learn, is not at its recorded position."""
        if not self.answers:
            return False
        text, start = self.answers[0]
        return not text or start < 0 or not self.context.startswith(text, start)
