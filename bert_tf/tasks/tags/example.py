"""The words of a sentence, and their tags."""

from __future__ import annotations

import dataclasses
import itertools


@dataclasses.dataclass(frozen=True)
class TagExample:
    guid: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None  # one tag per word, entities in IOB2; None to predict
    text: str | None = None  # source of the words; None if there are only words
    offsets: tuple[tuple[int, int], ...] = ()  # character span (start, end) of each word in `text`
    lines: tuple[str, ...] = ()  # lines of a column file by word, for the predictions
    before: tuple[str, ...] = ()  # lines between the previous sentence and this one
    after: tuple[str, ...] = ()  # blank line that ends it, if any

    @property
    def texts(self) -> tuple[str]:
        """The text; without one, the words joined with spaces."""
        return (" ".join(self.words) if self.text is None else self.text,)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Character span (start, end) of each word in the text of `texts`."""
        if self.text is not None:
            return list(self.offsets)
        ends = list(itertools.accumulate(len(word) + 1 for word in self.words))
        return [(end - len(word) - 1, end - 1) for word, end in zip(self.words, ends)]
