"""Number of CPU cores available."""

from __future__ import annotations

import math
import os

from bert_tf.runtime import cgroup


def granted_cpus() -> int:
    """Number of cores this process may use, at least 1.

    A container granted 1.5 of 64 cores sees all 64, but 64 threads would wait for each other. The grant is rounded up.
    """
    granted = cgroup.cpus()
    cores = _cores()
    return cores if granted is None else max(1, min(cores, math.ceil(granted)))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
