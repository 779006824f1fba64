"""Saving and restoring runs: weights in the checkpoint, training-only state in files beside it.

Saving changes nothing in the run: word vectors with deferred updates are written as they are, made current for the
checkpoint, and read back. So weights do not depend on when checkpoints are saved, which may follow the clock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import optimizer_state, saved
from bert_tf.checkpoints.restore import unwrapped
from bert_tf.errors import OutputError
from bert_tf.estimator import run_folder
from bert_tf.estimator.progress_hook import event_writer
from bert_tf.estimator.update import AVERAGED, BEFORE_SAVING, UNCHANGED
from bert_tf.io.log_form import log
from bert_tf.optimization.deferred import DEFERRED
from bert_tf.profiling.wall_clock import SAVES, WALL

tf1 = tf.compat.v1

_ALL = 2**31 - 1  # keeps all; TensorFlow's own 0 lists only the newest, and unlisted checkpoints are deleted later
STEPS, SECONDS = 1000, 600.0  # between saves: steps (as published) or time, whichever comes first
SHARE = 0.02  # largest share of time for saving
_BYTES_PER_SECOND = 1e9  # of a good disk, until the run's own speed is known


@dataclasses.dataclass
class Saving:
    """What saving has cost a run so far."""

    checkpoints: int = 0  # saved
    bytes: int = 0  # written
    seconds: float = 0.0  # spent
    last: float = 0.0  # seconds of the last save

    def add(self, size: int, seconds: float) -> None:
        self.checkpoints += 1
        self.bytes += size
        self.seconds += seconds
        self.last = seconds


try:
    from tensorflow.python.training.saver import BulkSaverBuilder

    class _SaveOnlyBuilder(BulkSaverBuilder):
        def _AddShardedRestoreOps(self, *_: Any) -> tf.Operation:  # noqa: N802  (TensorFlow's name)
            return tf.debugging.Assert(False, ["the run began without a checkpoint to restore"])

    def save_only() -> Any:
        """Returns the `builder` of a saver without restore operations, 10 % of a new run's graph."""
        return _SaveOnlyBuilder()

except ImportError:

    def save_only() -> Any:
        """Returns None, TensorFlow's own builder: savers can restore too."""
        return None


class RunSaver(tf1.train.Saver):
    """Saves trained weights, step, moving average and, before the last step, moments and deferred word vectors beside them.

    `saving` is the cost so far; `bytes` is the size of a checkpoint of the run with everything beside it.
    """

    def __init__(
        self,
        saving: Saving,
        *,
        total_steps: int,
        begin: int = 0,
        keep_slots: bool = False,
        keep_max: int = 5,
        restores: bool = True,
    ) -> None:
        """Builds the savers of the current graph; without restore operations a new run's graph is a tenth smaller.

        The last step, `total_steps`, needs no moments; at the step `begin`, where a finished run is extended, they are new.
        `keep_slots` puts them into every checkpoint, the last included; `keep_max` 0 keeps all checkpoints.
        """
        unchanged = tf1.get_collection(UNCHANGED)
        names = {variable.name for variable in unchanged}
        weights = [
            *(variable for variable in tf1.trainable_variables() if variable.name not in names),
            tf1.train.get_global_step(),
        ]
        names.update(variable.name for variable in weights)
        moments = [variable for variable in tf1.global_variables() if variable.name not in names]
        rows = tf1.get_collection(DEFERRED)
        held = [*weights, *moments] if keep_slots else weights
        builder = None if restores else save_only()
        super().__init__(held, sharded=True, max_to_keep=keep_max or _ALL, save_relative_paths=True, builder=builder)
        self._weights = _saver(weights, builder) if keep_slots and restores else self
        self._moments, self._rows = _saver(moments, builder), _saver(rows)
        self._averages = _averages(weights)
        self._unchanged = tf.group([unwrapped(variable).initializer for variable in unchanged]) if unchanged else None
        self._new_moments = tf.group([variable.initializer for variable in moments]) if begin else None
        self._begin = begin
        self._total = total_steps
        self._keep_slots = keep_slots
        self._restored: str | None = None
        self.saving = saving
        averaged_too = () if self._averages is None else weights
        self.bytes = sum(v.shape.num_elements() * v.dtype.size for v in (*weights, *moments, *rows, *averaged_too))

    def save(  # type: ignore[override]  # no run is saved without its step
        self, sess: tf1.Session, save_path: str, global_step: int, **settings: Any
    ) -> str:
        """Saves the run; once everything is on disk, deletes the training state of older checkpoints."""
        run_folder.refuse_lost(Path(save_path).parent)
        began = time.monotonic()
        prefix = f"{save_path}-{global_step}"
        goes_on = global_step < self._total
        try:
            if goes_on:
                _write(self._rows, sess, optimizer_state.rows(prefix))
            sess.run(tf1.get_collection(BEFORE_SAVING))
            if goes_on and not self._keep_slots:
                _write(self._moments, sess, optimizer_state.moments(prefix))
            if self._averages is not None:
                _write(self._averages, sess, saved.moving_average(prefix))
            super().save(sess, save_path, global_step, **settings)
        except BaseException:
            if saved.problem_of(prefix) is not None:  # else the interrupted checkpoint is complete, and others may be gone
                optimizer_state.delete(prefix)
                for path in saved.average_files(prefix):  # it may fill the disk
                    with contextlib.suppress(OSError):
                        path.unlink()
            raise
        if goes_on:
            _read(self._rows, sess, optimizer_state.rows(prefix))
        saved.delete_set_aside(prefix)
        optimizer_state.prune(prefix, self.last_checkpoints if self._keep_slots else [prefix] if goes_on else [])
        saved.publish_average(prefix)
        averages = sum(path.stat().st_size for path in saved.average_files(prefix))
        self.saving.add(optimizer_state.size(prefix) + averages, time.monotonic() - began)
        return prefix

    def _MaybeDeleteOldCheckpoints(self, *arguments: Any, **settings: Any) -> None:  # noqa: N802  (TensorFlow's name)
        """Deletes a surplus checkpoint only after the newest is synced to disk: power may fail."""
        if self.last_checkpoints:
            optimizer_state.to_disk(self.last_checkpoints[-1])
        super()._MaybeDeleteOldCheckpoints(*arguments, **settings)

    def restore(self, sess: tf1.Session, save_path: str) -> None:
        """Restores weights and moments; the caller must call `restore_rows` once the session exists."""
        tf1.train.Saver.restore(self._weights, sess, save_path)
        if self._unchanged is not None:
            sess.run(self._unchanged)
        if self._new_moments is not None and save_path.endswith(f"-{self._begin}"):
            sess.run(self._new_moments)
            return
        _read(self._moments, sess, save_path if optimizer_state.is_inside(save_path) else optimizer_state.moments(save_path))
        self._restored = save_path

    def restore_rows(self, session: tf1.Session) -> None:
        """Restores deferred word vectors if the checkpoint has some, else keeps the checkpoint's own.

        The step of each row's last update is a local variable, which a session initializes after `restore`.
        """
        if not self._restored or self._rows.saver_def is None:
            return
        rows = optimizer_state.rows(self._restored)
        if optimizer_state.exists(rows):
            _read(self._rows, session, rows)
        else:  # not copied along, or the run began with an earlier version or --nodefer_embeddings
            log.warning("no %s: the run continues, but may differ in the last digits from an uninterrupted run", rows)


def _averages(weights: Sequence[tf.Variable]) -> tf1.train.Saver | None:
    """Returns the saver of the moving average under the model's weight names; None without an average."""
    if not tf1.get_collection(AVERAGED):
        return None
    from bert_tf.optimization.averaging import shadows

    by_name = {variable.name.rpartition(":")[0]: variable for variable in weights}
    copies_of = tf.distribute.get_strategy().experimental_local_results  # a saver cannot rename variables with several copies
    held = {name: unwrapped(copies_of(variable)[0]) for name, variable in {**by_name, **shadows()}.items()}
    return tf1.train.Saver(held, sharded=True, max_to_keep=None)


def _saver(variables: Sequence[tf.Variable], builder: Any = None) -> tf1.train.Saver:
    return tf1.train.Saver(list(variables), sharded=True, max_to_keep=None, allow_empty=True, builder=builder)


def _write(saver: tf1.train.Saver, session: tf1.Session, prefix: str) -> None:
    if saver.saver_def is not None:  # None without variables
        Path(prefix).parent.mkdir(exist_ok=True)  # fails if the run's folder was deleted
        saver.save(session, prefix, write_meta_graph=False, write_state=False)


def _read(saver: tf1.train.Saver, session: tf1.Session, prefix: str) -> None:
    if saver.saver_def is not None:
        session.run(saver.saver_def.restore_op_name, {saver.saver_def.filename_tensor_name: prefix})


class SaverHook(tf1.train.SessionRunHook):
    """Makes a `RunSaver` save and restore the session of a run; `saving` is the cost."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self.saving = Saving()

    def begin(self) -> None:
        self._saver = RunSaver(self.saving, **self._settings)
        tf1.get_collection_ref(tf1.GraphKeys.SAVERS)[:] = [self._saver]

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        self._saver.restore_rows(session)


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


class CheckpointHook(tf1.train.CheckpointSaverHook):
    """Saves checkpoints during a run and at its end; `saver.RunSaver` decides what is saved."""

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        *,
        every_n_steps: Sequence[int] = (),
        by_pace: bool = False,
        listeners: Sequence[tf1.train.CheckpointSaverListener] = (),
    ) -> None:
        """Saves multiples of any of `every_n_steps`, and with `by_pace` also when `Pace` asks for it.

        Listeners hear of each checkpoint and may end training.
        """
        super().__init__(os.fspath(output_dir), save_steps=1, save_graph_def=False, listeners=list(listeners))
        self._every = tuple(every_n_steps)
        self._by_pace = by_pace
        self._pace: Pace | None = None
        self._step = 0
        self._drawing: threading.Thread | None = None

    def begin(self) -> None:
        event_writer(self._checkpoint_dir)
        super().begin()
        self._global_step_tensor = tf1.train.get_global_step()  # same fetches as other hooks: a session prepares for each set

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        """Saves nothing: the starting point is on disk already."""
        self._step = int(session.run(self._global_step_tensor))
        self._pace = Pace(self._get_saver(), self._step) if self._by_pace else None
        self._timer.update_last_triggered_step(self._step)

    def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
        """Fetches nothing, since steps are counted here; writes TensorBoard's graph during the first step."""
        if self._drawing is None:
            graph, writer = run_context.session.graph, event_writer(self._checkpoint_dir)
            self._drawing = threading.Thread(target=writer.add_graph, args=[graph], name="graph for TensorBoard")
            self._drawing.start()  # it is Python's work, unlike the session's preparation of the step

    def end(self, session: tf1.Session) -> None:
        if self._drawing is not None:
            self._drawing.join()
        super().end(session)

    def after_run(self, run_context: tf1.train.SessionRunContext, run_values: tf1.train.SessionRunValues) -> None:
        self._step += 1
        if any(self._step % steps == 0 for steps in self._every) or (self._pace and self._pace.is_due(self._step)):
            self._timer.update_last_triggered_step(self._step)
            if self._save(run_context.session, self._step):
                run_context.request_stop()

    @WALL.span(SAVES)
    def _save(self, session: tf1.Session, step: int) -> bool:
        try:
            ends = super()._save(session, step)
        except tf.errors.OutOfRangeError as error:  # TensorFlow's name for EFBIG; a session mistakes it for the end of data
            reason = os.strerror(errno.EFBIG)
            raise OutputError(
                f"{self._checkpoint_dir}: cannot write: {reason}; {saved.kept_note(self._checkpoint_dir)}"
            ) from error
        if self._pace:
            self._pace.saved(step)
        return ends
