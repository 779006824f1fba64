"""Signals that end a command after it has saved its work."""

from __future__ import annotations

import signal


def ending() -> list[signal.Signals]:
    """Those of schedulers and of a terminal that is closed, without those that the process ignores, as under nohup."""
    return [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
