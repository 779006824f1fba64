"""The trackers by name, their common interface, and a check that a tracker's package is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional, cast

from bert_tf import extras
from bert_tf.errors import FlagError
from bert_tf.extensions.track import MLFLOW, TENSORBOARD, WANDB

RUNNING, FINISHED, KILLED = "RUNNING", "FINISHED", "KILLED"  # status of a run, in MLflow's words

_PACKAGES = {MLFLOW: ("mlflow", "pandas"), WANDB: ("wandb",), TENSORBOARD: ()}  # the last comes with TensorFlow


class Point(NamedTuple):
    """One value of a metric."""

    name: str
    step: int
    value: float


Marks = Mapping[str, Point]  # the last point of each metric
Known = Optional[Marks]  # None if a tracker cannot say


class Tracker:
    """A connection to one tracker. Methods raise the errors of its package."""

    name: str

    def open(self, run: str, remote: str, title: str, group: str) -> str:
        """Finds the remote run by the tag `run`, or makes it; returns its id.

        `remote` is that of the state, if any; `group` names the sweep that the run belongs to, if any.
        """
        raise NotImplementedError

    def marks(self) -> Known:
        """Returns the last points that the remote run has."""
        return None

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Sets parameters, which never change, and tags."""

    def add(self, points: Sequence[Point], marks: Marks) -> None:
        """Adds points in ascending steps; `marks` are those after it."""

    def upload(self, path: Path) -> None:
        """Adds a file, or replaces it."""

    def end(self, status: str) -> None:
        """Sets the status of the run."""

    def close(self) -> None:
        """Ends the connection."""


def require(name: str) -> None:
    """Raises FlagError if the package of a tracker is not installed."""
    missing = [package for package in _PACKAGES[name] if importlib.util.find_spec(package) is None]
    if missing:
        raise FlagError(f"--tracker={name}: {missing[0]} is not installed: {extras.install(name)}")


def connect(name: str, folder: Path) -> Tracker:
    """Returns a tracker that keeps its local files in `folder`; imports its package."""
    require(name)
    module = importlib.import_module(f"bert_tf.extensions.track.to_{name}")
    return cast(Tracker, module.connect(folder))
