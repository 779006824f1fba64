"""Named time ranges, always measured, and shown in NVIDIA Nsight Systems if the package nvtx is installed."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dataclasses
import importlib
import re
import threading
import time
from pathlib import Path
from typing import Any

from bert_tf.errors import FlagError
from bert_tf.io.documents import LARGEST_SETTING

_MAPS = Path("/proc/self/maps")


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


@dataclasses.dataclass(frozen=True)
class StepRange:
    """Steps `first` to `last`, inclusive; the first step of a run is 1."""

    first: int
    last: int

    @classmethod
    def parse(cls, flag: str, text: str) -> StepRange:
        """Parses "20-30", or "20" for a single step; raises FlagError, naming the flag, for anything else."""
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", text.strip())
        if not match:
            raise FlagError(f"--{flag}={text}: expected a step or a range of steps, such as 20 or 20-30")
        first, last = int(match[1]), int(match[2] or match[1])
        if last > LARGEST_SETTING:
            raise FlagError(f"--{flag}={text}: steps count up to {LARGEST_SETTING}")
        if not 1 <= first <= last:
            raise FlagError(f"--{flag}={text}: steps count from 1, and a range must not end before it starts")
        return cls(first, last)
