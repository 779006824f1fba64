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


def bar(
    iterable: Iterable[Any] | None = None,
    *,
    desc: str | None = None,
    total: float | None = None,
    initial: float = 0,
    unit: str = "it",
    unit_scale: bool = False,
    smoothing: float = 0.3,
    dynamic_ncols: bool = False,
) -> tqdm[Any]:
    """Returns a bar of tqdm that shows itself where somebody looks; arguments are those of `tqdm.tqdm`."""
    return tqdm(
        iterable,
        desc=desc,
        total=total,
        initial=initial,
        unit=unit,
        unit_scale=unit_scale,
        smoothing=smoothing,
        dynamic_ncols=dynamic_ncols,
        disable=not _seen(),
    )


def say(line: str) -> None:
    """Writes a line where a bar would show itself."""
    if _seen():
        tqdm.write(line, file=sys.stderr)


def _seen() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
