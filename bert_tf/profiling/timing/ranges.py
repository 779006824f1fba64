"""Named ranges of time: for NVIDIA's Nsight Systems where the package nvtx is installed, and measured in any case."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import importlib
import threading
import time
from pathlib import Path
from typing import Any

_MAPS = Path("/proc/self/maps")


class Ranges:
    """Opens and closes ranges by name; they may overlap and be closed by another thread than the one that opened them.

    Attributes:
      seconds: what each closed range took, in their order, by name.
    """

    def __init__(self) -> None:
        """Looks for nvtx."""
        self._nvtx: Any = None
        with contextlib.suppress(ImportError):  # it is missing, or does not find a library that it needs
            self._nvtx = importlib.import_module("nvtx")
        self._open: dict[str, tuple[float, Any]] = {}
        self._lock = threading.Lock()
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)

    @property
    def seen_by_nsight(self) -> bool:
        """Whether nvtx is installed."""
        return self._nvtx is not None

    def start(self, name: str, *, shown: str | None = None) -> None:
        """Opens a range.

        Args:
          name: of the range.
          shown: its name in Nsight Systems; None for the same.
        """
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
        """Closes all ranges that are open, the last one first."""
        for name in reversed(list(self._open)):
            self.end(name)


class CudaProfiler:
    """Tells a profiler that was started with `-c cudaProfilerApi` when to record; nothing where no CUDA runtime is loaded."""

    def __init__(self) -> None:
        """Looks for the CUDA runtime that this process has loaded."""
        path = loaded_library("libcudart.so")
        self._runtime = ctypes.CDLL(path) if path else None

    def start(self) -> None:
        """Begins recording."""
        if self._runtime:
            self._runtime.cudaProfilerStart()

    def stop(self) -> None:
        """Ends recording."""
        if self._runtime:
            self._runtime.cudaProfilerStop()


def loaded_library(name: str) -> str | None:
    """Returns the path of a shared library that this process has loaded; None where it has not."""
    if not _MAPS.is_file():
        return None
    paths = (line.split(maxsplit=5)[-1] for line in _MAPS.read_text(encoding="utf-8").splitlines() if "/" in line)
    return next((path for path in paths if Path(path).name.startswith(name)), None)
