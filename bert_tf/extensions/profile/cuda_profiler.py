"""NVIDIA's profilers, which record between a start and a stop."""

from __future__ import annotations

import ctypes
from pathlib import Path

_MAPS = Path("/proc/self/maps")


class CudaProfiler:
    """Starts and stops a profiler launched with `-c cudaProfilerApi`; does nothing if no CUDA runtime is loaded."""

    def __init__(self) -> None:
        path = loaded_library("libcudart.so")
        self._runtime = ctypes.CDLL(path) if path else None

    def start(self) -> None:
        if self._runtime:
            self._runtime.cudaProfilerStart()

    def stop(self) -> None:
        if self._runtime:
            self._runtime.cudaProfilerStop()


def loaded_library(name: str) -> str | None:
    """Returns the path of a shared library loaded by this process; None if it is not loaded."""
    if not _MAPS.is_file():
        return None
    paths = (line.split(maxsplit=5)[-1] for line in _MAPS.read_text(encoding="utf-8").splitlines() if "/" in line)
    return next((path for path in paths if Path(path).name.startswith(name)), None)
