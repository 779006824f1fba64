"""Training hooks that stop a run: on request, when machines are lost, when replicas diverge."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import START_AGAIN, LostPeerError, TrainingError
from bert_tf.estimator.update import STOP, STOPS
from bert_tf.optimization import replicas
from bert_tf.runtime import signals

if TYPE_CHECKING:
    from bert_tf.runtime.peers import Watch

tf1 = tf.compat.v1

_SIGNAL, _EARLY = 1.0, 0.5  # a machine's message; they are summed, and at most one machine ends early
DIFFERING = "watch/differing"


class StopOnSignalHook(tf1.train.SessionRunHook):
    """Ends training with a checkpoint after the current step on Ctrl-C, SIGTERM or SIGHUP; a second Ctrl-C ends it at once.

    A second SIGTERM does not: a scheduler sends it to all processes of a job, and their leader passes it on.

    With several machines it also ends training early: the others learn of one machine's decision in their next step.
    `stopped_by` is the signal received, or None.
    """

    def __init__(self, *, together: bool = False) -> None:
        """With `together`, machines stop after the same step even if the signal reaches them at different times."""
        self._together = together
        self._early = self._begun = False
        self.stopped_by: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Installs the handlers before the graph is built; Python delivers signals to the main thread alone."""
        if self._previous or threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, *signals.ending()):
            self._previous[number] = signal.signal(number, self._remember)

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Delivers a signal that came while the graph was built: TensorFlow's C++ loses exceptions of handlers."""
        if self.stopped_by is None:
            self.install()
        elif not self._begun:
            self.release()
            signal.raise_signal(self.stopped_by)
        self._begun = True

    def _remember(self, number: int, frame: Any) -> None:
        self.stopped_by = signal.Signals(number)
        if signal.SIGINT in self._previous:
            signal.signal(signal.SIGINT, self._previous.pop(signal.SIGINT))

    def end_early(self) -> bool:
        """Requests the end without a signal; returns whether training can end now, without another step."""
        self._early = True
        return not self._together

    def before_run(self, run_context: tf1.train.SessionRunContext) -> tf1.train.SessionRunArgs | None:
        """Shares the stop request with the other machines and fetches theirs."""
        if not self._together:
            return None
        told, all_told = (run_context.session.graph.get_tensor_by_name(f"{name}:0") for name in (STOP, STOPS))
        return tf1.train.SessionRunArgs(all_told, feed_dict={told: self._known()})

    def _known(self) -> float:
        return _SIGNAL * (self.stopped_by is not None) + _EARLY * self._early

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        known = run_values.results if self._together else self._known()
        if known >= _SIGNAL and self.stopped_by is None:
            self.stopped_by = signal.SIGTERM  # received by another machine
        if known:
            run_context.request_stop()

    def release(self) -> None:
        """Restores the handlers after the last checkpoint, which must not be interrupted either."""
        while self._previous:
            signal.signal(*self._previous.popitem())


class EndHook(tf1.train.SessionRunHook):
    """Calls a function after the last step, before it is saved, unless a signal ended training."""

    def __init__(self, do: Callable[[], None], stop: StopOnSignalHook) -> None:
        """`do` starts the next phase ahead of time; an error recurs, and is reported, when the phase begins."""
        self._do = do
        self._stop = stop

    def end(self, session: tf1.Session) -> None:
        """Calls the function and ignores errors, which must not cost the last checkpoint."""
        if self._stop.stopped_by is None:
            with contextlib.suppress(Exception):
                self._do()


class ReplicaCheckHook(tf1.train.SessionRunHook):
    """Compares the replicas' weights between steps."""

    def __init__(self, every_n_steps: int, start_step: int) -> None:
        self._every = every_n_steps
        self._step = start_step

    def begin(self) -> None:
        self._differing = replicas.local_tensors(DIFFERING)
        self._names = [variable.name.rpartition(":")[0] for variable in tf1.trainable_variables()]

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        """Raises TrainingError if replicas differ; all machines compare at the same step, because they do so collectively."""
        self._step += 1
        if self._step % self._every:
            return
        differing = np.any(run_context.session.run(self._differing), axis=0)  # [V]
        names = [name for name, differs in zip(self._names, differing) if differs]
        if names:
            raise TrainingError(
                f"step {self._step}: the replicas have different weights ({len(names)} variables, the first is {names[0]}):"
                " a device or its connection is faulty; resume from the last checkpoint before this step"
            )


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
        from bert_tf.runtime.peers import close_in_background  # only with several machines

        close_in_background(session)
