"""Records what was sent of a run, in RUN/tracking/TRACKER.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.extensions.report.run_files import read_object
from bert_tf.extensions.track.trackers import Marks, Point
from bert_tf.io import atomic, documents


@dataclasses.dataclass(frozen=True)
class State:
    run: str  # tag of the remote run
    settings: str  # digest of those that determine the run
    remote: str = ""  # its id; empty before there is one
    described: str = ""  # digest of the sent parameters and tags
    marks: Marks = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)  # digests of the sent ones, by name
    status: str = ""


def load(path: Path, run: str, settings: str) -> State:
    """Returns an empty state if the file is missing, damaged or of another run; that of a moved folder keeps its tag."""
    content = read_object(path) or {}
    try:
        marks = {name: Point(name, int(step), float(value)) for name, (step, value) in content["marks"].items()}
        texts = {name: str(content[name]) for name in ("run", "settings", "remote", "described", "status")}
        read = State(**texts, marks=marks, files={name: str(digest) for name, digest in content["files"].items()})
        return read if read.settings == settings else State(run, settings)
    except (KeyError, TypeError, ValueError, AttributeError):
        return State(run, settings)


def save(path: Path, state: State) -> None:
    """Raises OutputError if the file cannot be written."""
    values: dict[str, Any] = {**vars(state), "marks": {name: point[1:] for name, point in state.marks.items()}}
    atomic.write_text(path, documents.to_json(values, indent=1, sort_keys=True) + "\n")
