"""Raw text cut into sentences by `sentencex`: it knows the abbreviations of some 300 languages and keeps quotations whole."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from importlib import metadata

from bert_tf import extras
from bert_tf.errors import FlagError

EXTRA = "sentences"
_PACKAGE = "sentencex"
# Its time is quadratic in a paragraph with many quotation marks: a longer one is cut between two words, else anywhere.
_LONGEST = 1 << 14  # characters
_PART = re.compile(rf".{{1,{_LONGEST}}}(?!\S)|.{{1,{_LONGEST}}}", re.DOTALL)


def cut(text: str, language: str = "en") -> list[str]:
    """Returns the sentences of a paragraph, without blanks around them.

    Args:
      text: without line ends.
      language: code of ISO 639.

    Raises:
      FlagError: the package that cuts is not installed.
    """
    parts = _PART.findall(text)
    return [sentence for part in parts for found in _segment()(language, part) if (sentence := found.strip())]


def version() -> str:
    """Returns what decides where text is cut: the package and its version.

    Raises:
      FlagError: it is not installed.
    """
    _segment()
    return f"{_PACKAGE} {metadata.version(_PACKAGE)}"


@functools.cache
def _segment() -> Callable[[str, str], Iterable[str]]:
    try:
        from sentencex import segment
    except ImportError as error:
        raise FlagError(
            f"raw text is cut into sentences by a package that is not installed: {extras.install(EXTRA)};"
            " or write one sentence a line"
        ) from error
    found: Callable[[str, str], Iterable[str]] = segment
    return found
