"""Savers without restore operations, 10 % of a new run's graph. Subclasses a private class of TensorFlow."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

try:
    from tensorflow.python.training.saver import BulkSaverBuilder

    class _SaverBuilder(BulkSaverBuilder):
        def _AddShardedRestoreOps(self, *_: Any) -> tf.Operation:  # noqa: N802  (TensorFlow's name)
            return tf.debugging.Assert(False, ["the run began without a checkpoint to restore"])

    def builder() -> Any:
        """Returns the `builder` of a `tf1.train.Saver` that only saves."""
        return _SaverBuilder()

except ImportError:

    def builder() -> Any:
        """Returns None, TensorFlow's own builder: savers can restore too."""
        return None


__all__ = ["builder"]
