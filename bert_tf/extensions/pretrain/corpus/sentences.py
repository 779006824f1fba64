"""Splits raw text into sentences with `sentencex`: abbreviations of some 300 languages, quotations kept whole."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from statistics import quantiles

from bert_tf import extras
from bert_tf.errors import FlagError

EXTRA = "sentences"
_PACKAGE = "sentencex"
_ENDS = tuple(".!?…。！？।؟:;\"'”’»)]}")  # noqa: RUF001  (of several scripts)
_INNER_END = re.compile(r"[.!?]\W? +\W?[A-Z]")
_FEW = 20  # lines, too few to tell
_FULL = 1.2  # of wrapped lines the longest are hardly longer than the median; of sentences 1.4 times or more
# Its time is quadratic in paragraphs with many quotation marks: longer ones are cut between words, else anywhere.
_LONGEST = 1 << 14  # characters
_PART = re.compile(rf".{{1,{_LONGEST}}}(?!\S)|.{{1,{_LONGEST}}}", re.DOTALL)


def cut(text: str, language: str = "en") -> list[str]:
    """Stripped sentences of a paragraph without line ends; raises FlagError if the package is not installed."""
    parts = _PART.findall(text)
    return [sentence for part in parts for raw in _segment()(language, part) if (sentence := raw.strip())]


def are_wrapped(lines: Sequence[str]) -> bool:
    """Whether stripped, non-empty lines look hard-wrapped: most end inside a sentence and are nearly as long as any."""
    if len(lines) < _FEW or 2 * sum(line.endswith(_ENDS) for line in lines) >= len(lines):
        return False
    tenths = quantiles(map(len, lines), n=10)
    return tenths[8] <= _FULL * tenths[4]


def are_paragraphs(lines: Sequence[str]) -> bool:
    """Whether most stripped, non-empty lines hold several sentences."""
    return len(lines) >= _FEW and 2 * sum(bool(_INNER_END.search(line)) for line in lines) > len(lines)


def version() -> str:
    """Package and version, which determine the split; raises FlagError if it is not installed."""
    _segment()
    return f"{_PACKAGE} {metadata.version(_PACKAGE)}"


@functools.cache
def _segment() -> Callable[[str, str], Iterable[str]]:
    try:
        from sentencex import segment
    except ImportError as error:
        raise FlagError(
            f"splitting raw text into sentences needs a package: {extras.install(EXTRA)}; or write one sentence per line"
        ) from error
    cutter: Callable[[str, str], Iterable[str]] = segment
    return cutter
