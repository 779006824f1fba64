"""Named time ranges, always measured, and shown in NVIDIA Nsight Systems if the package nvtx is installed."""

from __future__ import annotations

import collections
import contextlib
import importlib
import threading
import time
from typing import Any


class Ranges:
    """Named ranges, which may overlap or be closed by another thread; `seconds` lists durations by name, in order."""

    def __init__(self) -> None:
        self._nvtx: Any = None
        with contextlib.suppress(ImportError):  # not installed, or a library it needs is missing
            self._nvtx = importlib.import_module("nvtx")
        self._open: dict[str, tuple[float, Any]] = {}
        self._lock = threading.Lock()
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)

    @property
    def seen_by_nsight(self) -> bool:
        return self._nvtx is not None

    def start(self, name: str, *, shown: str | None = None) -> None:
        """Opens a range; `shown` is its name in Nsight Systems if different."""
        mark = self._nvtx.start_range(message=shown or name) if self._nvtx else None
        with self._lock:
            self._open[name] = (time.perf_counter(), mark)

    def end(self, name: str) -> None:
        """Closes a range, if it is open."""
        now = time.perf_counter()
        with self._lock:
            started, mark = self._open.pop(name, (None, None))
            if started is not None:
                self.seconds[name].append(now - started)
        if mark is not None:
            self._nvtx.end_range(mark)

    def end_all(self) -> None:
        for name in reversed(list(self._open)):
            self.end(name)
