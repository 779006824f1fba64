"""Memory and CPUs granted to a container or service by control groups, versions 1 and 2."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60  # version 1 says 2^63 less a page
_MEMBERSHIP = Path("/proc/self/cgroup")  # lines of NUMBER:CONTROLLERS:GROUP; no controller is named in version 2


def cpus() -> float | None:
    """CPU time granted to this process, in cores; None if unlimited."""
    shares = []
    for folder in _folders("cpu"):
        words = _read(folder / "cpu.max").split() or [_read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        numbers = [_number(word) or 0 for word in words]
        if len(numbers) == 2 and min(numbers) > 0:  # "max" and -1 are no limit
            shares.append(numbers[0] / numbers[1])
    return min(shares, default=None)


def memory() -> tuple[int, int] | None:
    """The tightest memory limit on this process and its free part, in bytes; None if unlimited."""
    limits = (_memory(folder) for folder in _folders("memory"))
    return min((limit for limit in limits if limit is not None), default=None)


def _folders(controller: str) -> Iterator[Path]:
    """Yields the folder of this process's group and of every enclosing group: all their limits apply."""
    groups = _groups()
    for mount, name in (("", ""), ("unified", ""), (controller, controller)):  # version 2, both versions, version 1
        group = PurePosixPath(groups.get(name, "/"))
        if ".." in group.parts:  # seen from inside a container, the group lies outside
            group = PurePosixPath("/")
        for around in (group, *group.parents):
            yield _ROOT / mount / around.relative_to(group.root)


def _groups() -> dict[str, str]:
    groups = {}
    for line in _read(_MEMBERSHIP).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if group.startswith("/"):
            groups.update(dict.fromkeys(controllers.split(","), group))
    return groups


def _memory(folder: Path) -> tuple[int, int] | None:
    for maximum, current, idle in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit = _number(_read(folder / maximum))
        if limit and limit < _NO_LIMIT:
            pages = dict(line.split() for line in _read(folder / "memory.stat").splitlines() if len(line.split()) == 2)
            used = (_number(_read(folder / current)) or 0) - (_number(pages.get(idle, "")) or 0)  # cached files can be dropped
            return limit, max(0, limit - max(0, used))
    return None


def _number(text: str) -> int | None:
    with contextlib.suppress(ValueError):
        return int(text)
    return None


def _read(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return path.read_text(encoding="utf-8")
    return ""


def granted_cpus() -> int:
    """Number of cores this process may use, at least 1.

    A container granted 1.5 of 64 cores sees all 64, but 64 threads would wait for each other. The grant is rounded up.
    """
    granted = cpus()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if granted is None else max(1, min(cores, math.ceil(granted)))
