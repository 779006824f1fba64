"""Python's garbage collector."""

from __future__ import annotations

import atexit
import gc

_MANY = 200_000


def collect_rarely() -> None:
    """Has the collector walk over all objects less often, and not once more when the process ends.

    TensorFlow's modules and a graph are a million objects that live to the end: with Python's threshold of 700 new ones, a
    tenth of the time until the first step is spent on looking at them again. When Python ends it would look at all of them,
    one after the other, only for the system to take the memory back: that is a second, or several on a busy machine.
    """
    gc.set_threshold(_MANY, 50, 50)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
