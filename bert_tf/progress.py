"""Progress bars: on a terminal, and in notebooks; nothing in files and pipes."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm


def bar(*arguments: Any, **settings: Any) -> tqdm[Any]:
    """Returns a bar of tqdm that shows itself where somebody looks; arguments are those of `tqdm.tqdm`."""
    is_notebook = "ipykernel" in sys.modules
    return tqdm(*arguments, disable=not (sys.stderr.isatty() or is_notebook), **settings)
