"""Python's garbage collector."""

from __future__ import annotations

import gc

_MANY = 200_000


def collect_rarely() -> None:
    """Has the collector walk over all objects less often.

    TensorFlow's modules and a graph are a million objects that live to the end: with Python's threshold of 700 new ones, a
    tenth of the time until the first step is spent on looking at them again.
    """
    gc.set_threshold(_MANY, 50, 50)
