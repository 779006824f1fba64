"""The end of a training on several machines."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bert_tf.errors import START_AGAIN, LostPeerError
from bert_tf.runtime.peers import Watch, close_in_background

tf1 = tf.compat.v1


class WatchHook(tf1.train.SessionRunHook):
    """Ends the watch at the last step, after which each may leave at any time.

    A session that TensorFlow recreates after a loss would train alone or wait forever, so it is refused.
    """

    def __init__(self, watch: Watch, steps: int) -> None:
        self._created = False
        self._watch = watch
        self._left = steps

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Raises LostPeerError for a second session, since the first was lost."""
        if self._created:
            raise LostPeerError(f"the connection to the other machines was lost; {START_AGAIN}")
        self._created = True

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        self._left -= 1
        if self._left <= 0 or run_context.stop_requested:
            self._watch.stop()

    def end(self, session: tf1.Session) -> None:
        """Continues without waiting for TensorFlow."""
        close_in_background(session)
