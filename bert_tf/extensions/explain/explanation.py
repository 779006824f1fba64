"""An explained output: its words with their scores, as text, in colours and in HTML."""

from __future__ import annotations

import dataclasses
import html
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from bert_tf.errors import FlagError

INTEGRATED_GRADIENTS, OCCLUSION = METHODS = ("integrated_gradients", "occlusion")
STEPS, MOST_STEPS = 16, 1024  # points of the integral: doubled until the scores are complete

_GREEN, _RED = (40, 160, 60), (220, 60, 50)  # words that raise the output, and those that lower it
_SHADES = {1: (194, 157, 120, 41), -1: (224, 217, 210, 203)}  # the same in the 256 terminal colours
_FAINTEST = 0.05  # lowest share of the largest score that is coloured
_LISTED = 10  # words with the largest scores


def refuse_idle(method: str, steps: int) -> None:
    """Raises FlagError for steps of a method without them."""
    if steps != STEPS and method != INTEGRATED_GRADIENTS:
        raise FlagError(f"--steps: is for --method={INTEGRATED_GRADIENTS}, not {method}; leave it out")


def points(most_steps: int) -> int:
    """How often a text is computed at most, by integrated gradients: with and without information, and for each integral."""
    count, steps = 2, STEPS
    while steps <= most_steps:
        count, steps = count + steps, 2 * steps
    return count


@dataclasses.dataclass(frozen=True)
class Explanation:
    """How much each word contributed to one output of the model.

    Attributes:
      id: id of the row.
      label: label, tag, option or answer whose logit is explained; of regression and similarity the predicted number.
      words: words read by the model, as they are written.
      scores: change of the output by each word; positive words raise it.
      segments: 0 for each word of the first text, 1 for each of the second.
      method: name of the method.
      output: explained output: a logit, or the cosine of a similarity model.
      baseline: the same without information: all words replaced by [PAD]; by [MASK] for occlusion.
      completeness_error: difference between the sum of scores and the change from baseline to output, relative to the change.
      steps: points of the integral; 0 for occlusion.
    """

    id: str
    label: Any
    words: tuple[str, ...]
    scores: tuple[float, ...]
    segments: tuple[int, ...]
    method: str
    output: float
    baseline: float
    completeness_error: float
    steps: int

    def __str__(self) -> str:
        """The head line, the words, and those with the largest scores."""
        return self._as_text(lambda word, _: word)

    def in_colours(self) -> str:
        """As `str`, with escape sequences of terminals."""
        return self._as_text(lambda word, share: f"\033[30;48;5;{_shade(share)}m{word}\033[0m")

    def _as_text(self, painted: Callable[[str, float], str]) -> str:
        """Lines of text; `painted` colours a word by its score as a share of the largest, from -1 to 1."""
        texts = [
            " ".join(painted(word, share) if abs(share) >= _FAINTEST else word for word, share in text)
            for text in self._texts()
        ]
        largest = sorted(zip(self.scores, self.words), key=lambda pair: -abs(pair[0]))[:_LISTED]
        return "\n".join([self._title, "", *texts, "", *(f"{score:+8.4f}  {word}" for score, word in largest)]) + "\n"

    def _repr_html_(self) -> str:
        texts = "".join(f"<p>{' '.join(itertools.starmap(_span, text))}</p>" for text in self._texts())
        return f"<figure><figcaption>{html.escape(self._title)}</figcaption>{texts}</figure>"

    @property
    def _title(self) -> str:
        label = f"{self.label:.4f}" if isinstance(self.label, float) else self.label
        return (
            f"{label}: output {self.output:.4f}, without words {self.baseline:.4f}; {self.method},"
            f" completeness error {self.completeness_error:.2%}"
        )

    def _texts(self) -> Iterator[list[tuple[str, float]]]:
        """The words of each text, with scores as shares of the largest."""
        largest = max(map(abs, self.scores), default=0.0) or 1.0
        for segment in sorted(set(self.segments)):
            each = zip(self.words, self.scores, self.segments)
            yield [(word, score / largest) for word, score, text in each if text == segment]


def _shade(share: float) -> int:
    shades = _SHADES[1 if share > 0 else -1]
    return shades[min(int(abs(share) * len(shades)), len(shades) - 1)]


def _span(word: str, share: float) -> str:
    red, green, blue = _GREEN if share > 0 else _RED
    colour = f"rgba({red}, {green}, {blue}, {0.7 * abs(share):.2f})"
    return f'<span style="background: {colour}" title="{share:+.2f}">{html.escape(word)}</span>'
