"""Number of CPU cores there are to compute on."""

from __future__ import annotations

import math
import os

from bert_tf.runtime import cgroup


def granted_cpus() -> int:
    """Returns how many cores this process may use, at least 1.

    A container that is granted 1.5 of 64 cores sees all 64: threads for all of them would wait for each other. What it is
    granted is rounded up.
    """
    granted = cgroup.cpus()
    cores = _cores()
    return cores if granted is None else max(1, min(cores, math.ceil(granted)))


def _cores() -> int:
    """Returns the cores that the process is not kept from."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
