"""Weights & Biases, online or offline (WANDB_MODE); local files are in RUN/tracking/wandb."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import FlagError
from bert_tf.extensions.track import WANDB
from bert_tf.extensions.track.trackers import FINISHED, RUNNING, Known, Marks, Point, Tracker
from bert_tf.io import documents

_SENT = "bert_tf_sent"  # in the summary: the last point of each metric, for a lost state


class Wandb(Tracker):
    name = WANDB

    def __init__(self, package: Any, folder: Path) -> None:
        """`package` is the module `wandb`."""
        self._package, self._folder, self._failed = package, folder, False
        self._run: Any = None
        self._init: dict[str, str] = {}

    def open(self, run: str, remote: str, title: str, group: str) -> str:
        """Begins a session when there is something to send: each one offline makes a folder."""
        self._init = {"id": run, "name": title, "project": os.environ.get("WANDB_PROJECT", "bert_tf")}
        if group:
            self._init["group"] = group
        if not remote:
            shutil.rmtree(self._folder / WANDB, ignore_errors=True)  # its contents are written again
            self._session()
        return run

    def _session(self) -> Any:
        if self._run is None:
            settings = self._package.Settings(silent=True, console="off")
            self._run = self._package.init(**self._init, dir=os.fspath(self._folder), resume="allow", settings=settings)
            self._run.define_metric("step")
            self._run.define_metric("*", step_metric="step")
        return self._run

    def marks(self) -> Known:
        """Returns what an earlier session left on the server; None if the state has it."""
        text = None if self._run is None else self._run.summary.get(_SENT)
        if not isinstance(text, str):
            return None
        sent = documents.parse_json(text)
        return {name: Point(name, step, value) for name, (step, value) in sent.items()}

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        self._session().config.update({**parameters, **tags}, allow_val_change=True)

    def add(self, points: Sequence[Point], marks: Marks) -> None:
        session = self._session()
        for step, of_step in itertools.groupby(points, key=lambda point: point.step):
            session.log({"step": step, **{point.name: point.value for point in of_step}})
        session.summary[_SENT] = documents.to_json({name: point[1:] for name, point in marks.items()})

    def upload(self, path: Path) -> None:
        session = self._session()
        copied = shutil.copy(path, session.dir)  # other files would be links
        session.save(copied, base_path=session.dir, policy="now")

    def end(self, status: str) -> None:
        if status != RUNNING:
            self._session()
            self._failed = status != FINISHED

    def close(self) -> None:
        if self._run is not None:
            self._run.finish(exit_code=int(self._failed))


def connect(folder: Path) -> Wandb:
    os.environ.setdefault("WANDB_SILENT", "true")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    if getattr(wandb, "run", None) is not None:  # `init` would return it
        raise FlagError("wandb: this program has a run of its own; end it first, by wandb.finish()")
    return Wandb(wandb, folder)
