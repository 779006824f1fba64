"""Code that Ray runs on a node; sent by value, so it imports only the standard library."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

# Python in a process that gets SIGTERM when the task's process ends, even by SIGKILL (PR_SET_PDEATHSIG of Linux).
_TIED = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
_PERIOD_S = 0.2
_TAIL = 4096  # bytes of a log that hold its last line


def sees(path: str) -> bool:
    return os.path.exists(path)


def lead(command: Sequence[str], folder: str, environment: Mapping[str, str], log: str) -> tuple[int, str]:
    """Runs Python, in a folder if this node has it; returns the exit status and the last line of the log.

    A process of its own, since a Ray task cannot handle signals: ray.cancel raises KeyboardInterrupt between two calls.
    """
    with open(log, "a+b") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", _TIED, *command],
            cwd=folder if os.path.isdir(folder) else None,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
        try:
            while process.poll() is None:
                time.sleep(_PERIOD_S)
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL))
        return process.returncode, stream.read().decode(errors="replace").strip().rpartition("\n")[2]
