"""A question about a text, and its answers."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Answer(NamedTuple):
    """A reference.

    Attributes:
      text: of the answer, as it stands in the context.
      start: its first character there; -1 where the data do not say it and the text does not occur exactly once.
    """

    text: str
    start: int


@dataclasses.dataclass(frozen=True)
class SpanExample:
    """A question about a context."""

    guid: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None = None  # the first is learned; empty for no answer, None where it is to be predicted
    title: str = ""  # of the article, whose questions are not independent of each other

    @property
    def label(self) -> tuple[str, ...] | None:
        """The texts of the answers, each once."""
        return None if self.answers is None else tuple(dict.fromkeys(answer.text for answer in self.answers))

    @property
    def texts(self) -> tuple[str, ...]:
        """Question and context, in the order of a row."""
        return self.question, self.context

    @property
    def is_misplaced(self) -> bool:
        """Whether the answer that is learned is not where the data say."""
        if not self.answers:
            return False
        text, start = self.answers[0]
        return not text or start < 0 or not self.context.startswith(text, start)
