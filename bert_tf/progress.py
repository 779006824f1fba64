"""Progress bars and lines: on a terminal, and in notebooks; nothing in files and pipes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

from tqdm import TqdmWarning

with warnings.catch_warnings():
    warnings.simplefilter("ignore", TqdmWarning)  # a notebook without ipywidgets has bars of text
    from tqdm.auto import tqdm


def bar(iterable: Iterable[Any] | None = None, **options: Any) -> tqdm[Any]:
    """Returns a bar that shows itself where somebody looks.

    Args:
      iterable: whose elements are counted; None where the caller counts.
      **options: of `tqdm.tqdm`.
    """
    return tqdm(iterable, disable=not _seen(), **options)


def say(line: str) -> None:
    """Writes a line where a bar would show itself."""
    if _seen():
        tqdm.write(line, file=sys.stderr)


def _seen() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
