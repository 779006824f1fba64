"""Sessions over several machines, for whose end TensorFlow takes up to 90 s: nothing waits for it."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_THREADS: list[threading.Thread] = []


def close_in_background(session: Any) -> None:
    """Has the next `session.close()` return at once."""
    thread = threading.Thread(target=session.close, name="close session", daemon=True)
    session.close = lambda: None if thread.ident else thread.start()
    _THREADS.append(thread)


def leave(status: int) -> int:
    """Returns the exit status; where a session is still being closed the process ends here, since Python cannot end it."""
    if any(thread.is_alive() for thread in _THREADS):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
