"""Intervals between checkpoints where no flag sets them: often enough to lose little, so rarely that it costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

from bert_tf.estimator.saver import RunSaver

STEPS, SECONDS = 1000, 600.0  # after so many steps, as published, or so much time, whichever comes first
SHARE = 0.02  # of the time that saving may take

_BYTES_PER_SECOND = 1e9  # of a good disk, until the run's own has been seen


class Pace:
    """Tells when a checkpoint is due.

    One that saving takes too long for waits: those of a run, with this one and that of the end, take 2 % of its time at most.
    """

    def __init__(self, saver: RunSaver, step: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts the clock.

        Args:
          saver: tells what saving costs.
          step: that the run starts at.
          clock: returns seconds.
        """
        self._saver = saver
        self._clock = clock
        self._step = step
        self._began = self._saved = clock()

    def is_due(self, step: int) -> bool:
        """Whether to save at a step."""
        now, saving = self._clock(), self._saver.saving
        if step // STEPS == self._step // STEPS and now - self._saved < SECONDS:
            return False
        expected = saving.last or self._saver.bytes / _BYTES_PER_SECOND
        return saving.seconds + 2 * expected <= SHARE * (now - self._began)

    def saved(self, step: int) -> None:
        """Counts from a checkpoint on."""
        self._step, self._saved = step, self._clock()
