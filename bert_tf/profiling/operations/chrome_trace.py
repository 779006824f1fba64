"""Writes a recorded step for Chrome's trace viewer, using a private module of TensorFlow."""

from __future__ import annotations

from typing import Any

try:
    from tensorflow.python.client.timeline import Timeline

    def text(step_stats: Any) -> str | None:
        """Returns the JSON of a step's `StepStats`; None if this TensorFlow cannot write it."""
        return Timeline(step_stats).generate_chrome_trace_format()

except ImportError:

    def text(step_stats: Any) -> str | None:
        del step_stats
        return None


__all__ = ["text"]
