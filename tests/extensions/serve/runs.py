"""Runs of every family with weights that nothing has trained."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.batch.runs import write_run
from tests.tiny import TinyProject

_SPAN = {"doc_stride": 8, "max_query_length": 6, "version_2_with_negative": True}
# Records and rows of each kind.
KINDS = {
    "classification": ({"labels": ["0", "1"]}, ["rain came", ["storm", "the wind"], {"text": "a red pear", "id": "x"}]),
    "multi_label": ({"labels": ["b", "a"]}, ["rain came", {"text_a": "storm", "text_b": "wind"}]),
    "regression": ({"labels": []}, [["rain", "storm"], "bread"]),
    "span": ({"labels": [], **_SPAN}, [{"question": "a red", "context": "rain came over the old wind and soup " * 3}]),
    "tags": ({"labels": ["O", "B-W", "I-W"]}, ["Rain came.", ["storm", "over", "soup"], {"tokens": ["salt"], "id": "y"}]),
    "choice": (
        {"labels": []},
        [{"context": "rain", "question": "", "options": ["storm", "soup", "salt"]}, ["a", "b", ["rain", "pear"]]],
    ),
    "similarity": ({"labels": [], "highest_score": 5.0}, [["rain", "storm"], {"text_a": "salt", "text_b": "soup"}]),
    "contrastive": ({"labels": [], "temperature": 0.05}, [["rain", "storm"]]),
}


def write(folder: Path, project: TinyProject, kind: str, steps: Iterable[int] = (20,)) -> Path:
    """Writes a run of a key of `KINDS`; the weights of a checkpoint depend on its step, the last is the newest."""
    return write_run(folder, project, steps, record={"task_name": "custom", "kind": kind, **KINDS[kind][0]})
