"""The words of a sentence, and their tags."""

from __future__ import annotations

import dataclasses
import itertools


@dataclasses.dataclass(frozen=True)
class TagExample:
    """A sentence.

    Attributes:
      guid: its name.
      words: in their order.
      label: a tag for each word, of entities in IOB2; None where they are to be predicted.
      text: that the words were taken from; None where there are words only.
      offsets: first character of each word in `text` and the one after its last.
      lines: of a column file, one for each word, kept for the file of predictions.
      before: lines of the file between the sentence before and this one.
      after: the blank line that ends it, if there is one.
    """

    guid: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] = ()
    lines: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str]:
        """The text; where there are words only, these with a blank between them."""
        return (" ".join(self.words) if self.text is None else self.text,)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First character of each word in the text of `texts`, and the one after its last."""
        if self.text is not None:
            return list(self.offsets)
        ends = list(itertools.accumulate(len(word) + 1 for word in self.words))
        return [(end - len(word) - 1, end - 1) for word, end in zip(self.words, ends)]
