"""Closes multi-machine sessions in the background: TensorFlow takes up to 90 s."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_THREADS: list[threading.Thread] = []


def close_in_background(session: Any) -> None:
    """Makes the next `session.close()` return immediately."""
    thread = threading.Thread(target=session.close, name="close session", daemon=True)
    session.close = lambda: None if thread.ident else thread.start()
    _THREADS.append(thread)


def leave(status: int) -> int:
    """Returns the exit status, or ends the process if a session is still closing, since Python cannot."""
    if any(thread.is_alive() for thread in _THREADS):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
