"""The contents of a run that trackers receive, read from its files."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.estimator.run_folder import MACHINE, VERSIONS
from bert_tf.extensions.report.run_files import Evaluated, Run, is_number, mapping
from bert_tf.extensions.track.trackers import FINISHED, KILLED, Point
from bert_tf.io import atomic, documents, files

FILES = (
    *(run_layout.RECORD, run_layout.CONFIG, run_layout.VOCABULARY, run_layout.TOKENIZER, run_layout.DECISION),
    *(run_layout.RESULTS_TEXT, run_layout.RESULTS, run_layout.TIMING, run_layout.PAGE, run_layout.CARD),
)
_TAGS = ("command", "data_note")  # keys of a record
SWEEP_TAG = "bert_tf.sweep"

_OF_SWEEP = ("sweep.tsv", "sweep.json")  # beside the folders of its runs
_UNUSUAL = re.compile(r"[^\w\-. /]")  # characters that MLflow refuses in names


@dataclasses.dataclass(frozen=True)
class Contents:
    """The part of a run that trackers show."""

    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    series: Sequence[Point]  # of training, and evaluations during it; ascending steps
    results: Sequence[Point]  # of the last evaluation
    files: Mapping[str, str]  # SHA-256 by name
    ending: str  # status if training has ended

    @property
    def described(self) -> str:
        """Digest of parameters and tags."""
        return _digest([dict(self.parameters), dict(self.tags)])


def settings_digest(run: Run) -> str:
    return _digest(run.training)


def run_id(run: Run) -> str:
    """Identifies a run by its settings and its place; a continued run has the same."""
    return _digest([socket.gethostname(), str(run.folder.resolve()), run.training])


def sweep_of(folder: Path) -> str:
    """Name of the sweep that a run belongs to; empty if there is none."""
    above = folder.resolve().parent
    return above.name if any((above / name).is_file() for name in _OF_SWEEP) else ""


def _digest(value: object) -> str:
    return hashlib.sha256(documents.to_json(value, sort_keys=True).encode()).hexdigest()[:16]


def read_contents(run: Run) -> Contents:
    series = [*_series("train", run.metrics), *_series("eval", run.evaluations)]
    last = max((point.step for point in series), default=0)
    results = [
        point
        for evaluated in run.evaluated
        for point in _results(evaluated, "" if evaluated is run.own else f"{evaluated.task}/", last)
    ]
    sweep = sweep_of(run.folder)
    trained = run.stopped_at is not None or last >= (run.planned_steps or 1)
    return Contents(
        dict(_flat(run.training)),
        {
            **({SWEEP_TAG: sweep} if sweep else {}),
            **{key: str(run.record[key]) for key in _TAGS if run.record.get(key)},
            **{f"{key}.{name}": text for key in (VERSIONS, MACHINE) for name, text in _flat(mapping(run.record, key))},
        },
        sorted(series, key=lambda point: point.step),
        results,
        dict(_digests(run.folder)),
        FINISHED if trained or results else KILLED,
    )


def _series(prefix: str, lines: Sequence[Mapping[str, float]]) -> Iterator[Point]:
    for line in lines:
        for name, value in line.items():
            if name != "step":
                yield Point(_name(f"{prefix}/{name.removeprefix('eval_')}"), int(line["step"]), float(value))


def _results(evaluated: Evaluated, prefix: str, last: int) -> Iterator[Point]:
    recorded = evaluated.results.get("global_step")
    step = int(recorded) if is_number(recorded) else last
    for split, values in evaluated.splits.items():
        for name, value in values.items():
            if is_number(value):
                yield Point(_name(f"{prefix}{split}/{name}"), step, float(value))


def _name(text: str) -> str:
    return _UNUSUAL.sub("_", text)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields nested settings by dotted names, as text."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield _name(f"{prefix}{key}"), value if isinstance(value, str) else documents.to_json(value)


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    for name in FILES:
        if (folder / name).is_file() and not atomic.is_link_out(folder / name):  # a stranger's run may link to anything
            yield name, files.digest(folder / name)
