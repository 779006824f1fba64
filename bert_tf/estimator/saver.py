"""Saving and restoring runs: weights in the checkpoint, training-only state in files beside it.

Saving changes nothing in the run: word vectors with deferred updates are written as they are, made current for the
checkpoint, and read back. So weights do not depend on when checkpoints are saved, which may follow the clock.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import optimizer_state
from bert_tf.checkpoints.restore import unwrapped
from bert_tf.checkpoints.saved import delete_set_aside, problem_of
from bert_tf.estimator import averaged, save_only
from bert_tf.estimator.update import BEFORE_SAVING
from bert_tf.log_form import log
from bert_tf.optimization import averaging
from bert_tf.optimization.deferred import DEFERRED

tf1 = tf.compat.v1

_ALL = 2**31 - 1  # checkpoints; TensorFlow's own 0 lists only the newest, and what is not in the list is deleted later


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


class RunSaver(tf1.train.Saver):
    """Saves weights, step, moving average and, before the last step, moments and deferred word vectors beside them.

    `saving` is the cost so far; `bytes` is the size of a checkpoint of the run with everything beside it.
    """

    def __init__(
        self, saving: Saving, *, total_steps: int, keep_slots: bool = False, keep_max: int = 5, restores: bool = True
    ) -> None:
        """Builds the savers of the current graph; without restore operations a new run's graph is a tenth smaller.

        The last step, `total_steps`, needs no moments; `keep_slots` puts them into every checkpoint, the last included;
        `keep_max` 0 keeps all checkpoints.
        """
        weights = [*tf1.trainable_variables(), tf1.train.get_global_step()]
        names = {variable.name for variable in weights}
        moments = [variable for variable in tf1.global_variables() if variable.name not in names]
        rows = tf1.get_collection(DEFERRED)
        saved = [*weights, *moments] if keep_slots else weights
        builder = None if restores else save_only.builder()
        super().__init__(saved, sharded=True, max_to_keep=keep_max or _ALL, save_relative_paths=True, builder=builder)
        self._weights = _saver(weights, builder) if keep_slots and restores else self
        self._moments, self._rows = _saver(moments, builder), _saver(rows)
        self._averages = _averages(weights)
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
                _write(self._averages, sess, averaged.moving(prefix))
            super().save(sess, save_path, global_step, **settings)
        except BaseException:
            if problem_of(prefix) is not None:  # else it was interrupted when the checkpoint was whole, and others may be gone
                optimizer_state.delete(prefix)
                averaged.delete(prefix)
            raise
        if goes_on:
            _read(self._rows, sess, optimizer_state.rows(prefix))
        delete_set_aside(prefix)
        optimizer_state.prune(prefix, self.last_checkpoints if self._keep_slots else [prefix] if goes_on else [])
        averaged.settle(prefix)
        self.saving.add(optimizer_state.size(prefix) + averaged.size(prefix), time.monotonic() - began)
        return prefix

    def _MaybeDeleteOldCheckpoints(self, *arguments: Any, **settings: Any) -> None:  # noqa: N802  (TensorFlow's name)
        """Deletes a surplus checkpoint only after the newest is synced to disk: power may fail."""
        if self.last_checkpoints:
            optimizer_state.to_disk(self.last_checkpoints[-1])
        super()._MaybeDeleteOldCheckpoints(*arguments, **settings)

    def restore(self, sess: tf1.Session, save_path: str) -> None:
        """Restores weights and moments; the caller must call `restore_rows` once the session exists."""
        tf1.train.Saver.restore(self._weights, sess, save_path)
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
        else:  # it was left out of a copy, or the run was begun by an earlier version or with --nodefer_embeddings
            log.warning("no %s: the run goes on, but may differ in its last digits from one in one piece", rows)


def _averages(weights: Sequence[tf.Variable]) -> tf1.train.Saver | None:
    """Returns the saver of the moving average under the model's weight names; None without an average."""
    shadows = averaging.shadows()
    if not shadows:
        return None
    named = {variable.name.rpartition(":")[0]: variable for variable in weights}
    copies_of = tf.distribute.get_strategy().experimental_local_results  # a saver renames no variable with several copies
    saved = {name: unwrapped(copies_of(variable)[0]) for name, variable in {**named, **shadows}.items()}
    return tf1.train.Saver(saved, sharded=True, max_to_keep=None)


def _saver(variables: Sequence[tf.Variable], builder: Any = None) -> tf1.train.Saver:
    return tf1.train.Saver(list(variables), sharded=True, max_to_keep=None, allow_empty=True, builder=builder)


def _write(saver: tf1.train.Saver, session: tf1.Session, prefix: str) -> None:
    if saver.saver_def is not None:  # of no variables there is none
        Path(prefix).parent.mkdir(exist_ok=True)  # where the run's own folder was deleted, that is an error
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
        del coord
        self._saver.restore_rows(session)
