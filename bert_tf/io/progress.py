"""Progress bars and lines: on terminals and in notebooks, not in files and pipes."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import TqdmWarning, tqdm

_OF_NOTEBOOKS = "ipykernel.kernelapp"  # a module that is loaded there
if _OF_NOTEBOOKS in sys.modules:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # a notebook without ipywidgets shows text bars
        from tqdm.auto import tqdm  # imports asyncio, for which no command waits

_QUIET = contextvars.ContextVar("quiet", default=False)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hides bars and lines in the block."""
    before = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(before)


def bar(iterable: Iterable[Any] | None = None, **options: Any) -> tqdm[Any]:
    """Returns a tqdm bar, hidden unless somebody can see it; without an iterable the caller counts."""
    return tqdm(iterable, disable=not _seen(), **options)


def say(line: str) -> None:
    """Writes a line if a bar would be visible."""
    if _seen():
        tqdm.write(line, file=sys.stderr)


def on_terminal() -> bool:
    """Whether standard error is a terminal; a program may have replaced it by what is no file, or closed it."""
    is_terminal = getattr(sys.stderr, "isatty", bool)
    with contextlib.suppress(ValueError):  # it is closed
        return bool(is_terminal())
    return False


def _seen() -> bool:
    return not _QUIET.get() and (on_terminal() or _OF_NOTEBOOKS in sys.modules)
