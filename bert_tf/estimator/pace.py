"""Default checkpoint intervals: frequent enough to lose little work, rare enough to cost little time."""

from __future__ import annotations

import time
from collections.abc import Callable

from bert_tf.estimator.saver import RunSaver

STEPS, SECONDS = 1000, 600.0  # after so many steps, as published, or so much time, whichever comes first
SHARE = 0.02  # of the time that saving may take

_BYTES_PER_SECOND = 1e9  # of a good disk, until the run's own has been seen


class Pace:
    """Decides when a checkpoint is due.

    Saving takes at most 2 % of wall time, counting this checkpoint and the last one; a slow save waits until it fits.
    """

    def __init__(self, saver: RunSaver, step: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._saver = saver
        self._clock = clock
        self._step = step
        self._began = self._saved = clock()

    def is_due(self, step: int) -> bool:
        now, saving = self._clock(), self._saver.saving
        if step // STEPS == self._step // STEPS and now - self._saved < SECONDS:
            return False
        expected = saving.last or self._saver.bytes / _BYTES_PER_SECOND
        return saving.seconds + 2 * expected <= SHARE * (now - self._began)

    def saved(self, step: int) -> None:
        self._step, self._saved = step, self._clock()
