"""Whether operations must be deterministic: TensorFlow's setter is public, its getter is private."""

from __future__ import annotations

try:
    from tensorflow.python.framework.config import is_op_determinism_enabled as is_demanded
except ImportError:

    def is_demanded() -> bool:
        """True as the safe default if TensorFlow cannot tell: always correct, slightly slower."""
        return True


__all__ = ["is_demanded"]
