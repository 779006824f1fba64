"""Python's garbage collector."""

from __future__ import annotations

import atexit
import gc

_MANY = 200_000


def collect_rarely() -> None:
    """Makes garbage collection rare, and skips it at exit.

    TensorFlow's modules and a graph are a million objects that live to the end: with Python's threshold of 700 new objects,
    walking over them takes a tenth of the time to the first step. At exit it takes a second, several on a busy machine.
    """
    gc.set_threshold(_MANY, 50, 50)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
