"""Progress bars: on a terminal, and in notebooks; nothing in files and pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm


def bar(
    iterable: Iterable[Any] | None = None,
    *,
    desc: str | None = None,
    total: float | None = None,
    initial: float = 0,
    unit: str = "it",
    smoothing: float = 0.3,
    dynamic_ncols: bool = False,
) -> tqdm[Any]:
    """Returns a bar of tqdm that shows itself where somebody looks; arguments are those of `tqdm.tqdm`."""
    shown = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(
        iterable,
        desc=desc,
        total=total,
        initial=initial,
        unit=unit,
        smoothing=smoothing,
        dynamic_ncols=dynamic_ncols,
        disable=not shown,
    )
