"""Trains a finished run longer: more steps in its folder, with a warm-up and a decay of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.errors import OutputError
from bert_tf.estimator import run_folder
from bert_tf.estimator.run import last_step
from bert_tf.io import documents
from bert_tf.run_layout import DETERMINING
from bert_tf.training.run import Run


def extended(run: Run, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds to a run's record the steps at which its run was extended, now included if the run asks for more steps.

    Raises OutputError if the folder's run has not reached its last step, or has two phases.
    """
    earlier = run_folder.load_record(run.output_dir)
    if earlier is None:
        return record
    past = earlier[DETERMINING].get(run_folder.EXTENDED, [])
    requested = documents.json_value(documents.to_json(record[DETERMINING]))
    recorded = {name: value for name, value in earlier[DETERMINING].items() if name != run_folder.EXTENDED}
    changed = {name for name in {*recorded, *requested} if recorded.get(name) != requested.get(name)}
    if changed and run.spec.output.overwrite_output_dir:
        return record
    if changed and changed <= run_folder.DURATION:
        past = [*past, *_finished_at(run, earlier)]
    return {**record, DETERMINING: {**record[DETERMINING], run_folder.EXTENDED: past}} if past else record


def begin(record: Mapping[str, Any]) -> int:
    """The step at which the last extension of a run began; 0 without one."""
    return int([0, *record[DETERMINING].get(run_folder.EXTENDED, [])][-1])


def _finished_at(run: Run, earlier: Mapping[str, Any]) -> list[int]:
    """The last step of the folder's run, if the run asks for more; empty otherwise."""
    trained = earlier.get(run_folder.SCHEDULE, {})
    rows, steps = trained.get("train_rows", trained.get("train_examples")), trained.get("steps")
    if not steps or not rows or run.schedule(rows).steps <= steps:  # not steps: killed before the first
        return []
    reached = last_step(run.output_dir)
    reason = "has two phases, which share a schedule" if len(run.phases) > 1 else ""
    reason = reason or (f"is at step {reached} of {steps}: repeat its own command first" if reached != steps else "")
    if reason:
        raise OutputError(
            f"{run.output_dir}: only a finished run is trained longer; this one {reason}, or start a new run from its encoder"
            f" (--init_checkpoint={run.output_dir} --output_dir=NEW)"
        )
    return [steps]
