"""How long this process has been there, imports included."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/self/stat")
_START = 19  # place of the start, in ticks since boot, behind the name of the program
_IMPORTED = time.monotonic()


def seconds() -> float:
    """Returns the seconds since the process was started; since this module was imported where the system does not tell."""
    try:
        ticks = int(_STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[_START])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = -1.0
    return age if age >= 0.0 else time.monotonic() - _IMPORTED
