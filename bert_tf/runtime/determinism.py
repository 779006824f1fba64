"""Whether operations must be deterministic: TensorFlow's function to demand it is public, the one to ask is private."""

from __future__ import annotations

try:
    from tensorflow.python.framework.config import is_op_determinism_enabled as is_demanded
except ImportError:

    def is_demanded() -> bool:
        """Returns True, the safe default: correct either way, slightly slower."""
        return True


__all__ = ["is_demanded"]
