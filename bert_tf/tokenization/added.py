"""Finds added tokens in texts: some as they are written, others in the text as the rules leave it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bert_tf.tokenization.characters import Rules, spread, spread_with_positions
from bert_tf.tokenization.text_rules import Added


class Part(NamedTuple):
    """A part of a text, and where it is there."""

    text: str
    positions: Sequence[int]
    id: int | None  # of the added token that it is


class AddedTokens:
    """Cuts texts at added tokens; of tokens that begin at one place, the longest is taken."""

    def __init__(self, added: Iterable[Added], rules: Rules) -> None:
        self._rules = rules._replace(split_punctuation=False)
        self._as_written, self._normalized = dict[str, Added](), dict[str, Added]()
        for token in added:
            if token.is_normalized:
                self._normalized[spread(token.content, self._rules)] = token
            else:
                self._as_written[token.content] = token
        self._normalized.pop("", None)
        self._patterns = _pattern(self._as_written), _pattern(self._normalized)

    def parts(self, text: str) -> Iterator[Part]:
        as_written, normalized = self._patterns
        for part in _cut(Part(text, range(len(text)), None), as_written, self._as_written):
            if part.id is not None or normalized is None or normalized.search(spread(part.text, self._rules)) is None:
                yield part
                continue
            spaced = spread_with_positions(part.text, self._rules)
            positions = [part.positions[position] for position in spaced.positions]
            yield from _cut(Part(spaced.text, positions, None), normalized, self._normalized)


def _pattern(tokens: dict[str, Added]) -> re.Pattern[str] | None:
    longest_first = sorted(tokens.items(), key=lambda pair: -len(pair[0]))
    either = "|".join(
        rf"(?<!\w){re.escape(text)}(?!\w)" if token.is_single_word else re.escape(text) for text, token in longest_first
    )
    return re.compile(either) if either else None


def _cut(part: Part, pattern: re.Pattern[str] | None, tokens: dict[str, Added]) -> Iterator[Part]:
    text, positions, _ = part
    start = 0
    for match in pattern.finditer(text) if pattern else ():
        if start < match.start():
            yield Part(text[start : match.start()], positions[start : match.start()], None)
        yield Part(match.group(), positions[match.start() : match.end()], tokens[match.group()].id)
        start = match.end()
    if start < len(text):
        yield Part(text[start:], positions[start:], None)
