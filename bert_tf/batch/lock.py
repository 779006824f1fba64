"""Locks between jobs that write to one place; they end with the process that holds them."""

from __future__ import annotations

import fcntl
from typing import IO


def take(file: IO[bytes], *, wait: bool) -> bool:
    """Locks an open file until it is closed; returns whether no other job holds it.

    Args:
      file: open for writing, as file systems over the network want it.
      wait: whether to wait for the other job instead.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system that knows no locks
        return True
    return True
