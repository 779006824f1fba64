"""Compares exports with the package: differences of outputs and metrics, size, loading time."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.batch.computer import Computer, InferenceOptions
from bert_tf.batch.job import Given
from bert_tf.errors import DataError
from bert_tf.export.opening import OPENERS, Compute
from bert_tf.features.columns import Array, Features
from bert_tf.fields import TOKEN, Field
from bert_tf.inputs.pipeline import TO_LONGEST, eval_batches
from bert_tf.jobs import export, learned, sources
from bert_tf.jobs.export_config import target
from bert_tf.jobs.learned import Learned
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry as heads
from bert_tf.runtime.devices import session_config
from bert_tf.runtime.machine import Machine
from bert_tf.tasks.base import DEV, Outputs
from bert_tf.tasks.in_memory import RowsTask
from bert_tf.tasks.on_disk import Unopened

_EXAMPLES = 400  # of dev, the first ones
_ROWS = 32  # of a batch
_POINTS = 100.0


class Row(NamedTuple):
    """One export compared with the package."""

    format: str
    kind: str  # of the family
    difference: float | None  # largest of the head's outputs; None without examples
    size_mb: float  # of the folder
    load_s: float  # until ready to compute
    metric: str  # first of the family
    change: float | None  # of the metric, in points


def compare(runs: Sequence[str], formats: Sequence[str], *, environment: Mapping[str, str]) -> Iterator[Row]:
    """Yields a row per run and format (keys of `OPENERS`); deletes the exports."""
    for run in runs:
        model = learned.find(run, None, Given(), environment=environment)
        examples = _examples(model, environment)
        for name in formats:
            with tempfile.TemporaryDirectory(prefix="bert_tf-") as folder:
                yield _row(model, examples, name, Path(folder) / "exported")


def _row(model: Learned, examples: Sequence[Any], name: str, folder: Path) -> Row:
    export.write(model, target(format=name, output=folder))
    start = time.perf_counter()
    compute = OPENERS[name](folder)
    took = time.perf_counter() - start
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    family = model.task.family
    row = Row(name, family.kind, None, size, took, family.metrics[0], None)
    if not examples:
        return row
    features = family.features(examples, model.trained.tokenizer, model.trained.limits)
    ours, theirs = _own(model, features), _outputs(model, features, compute)
    values = [family.evaluation(family.predictions(found, features, examples), examples).metrics for found in (ours, theirs)]
    change = (values[1][row.metric] - values[0][row.metric]) * _POINTS
    difference = max(float(np.abs(ours[output] - theirs[output]).max()) for output in ours)
    return row._replace(difference=difference, change=change)


def _examples(model: Learned, environment: Mapping[str, str]) -> Sequence[Any]:
    """Dev examples; empty if the files are missing or hold plain text, as for pre-training."""
    if isinstance(model.task, RowsTask):
        return ()
    with contextlib.suppress(DataError):
        folder = sources.find_data(model.task, None, environment=environment).folder
        found = model.task.examples(folder, model.task.splits(folder, DEV)[0])
        return () if isinstance(found, Unopened) else found[:_EXAMPLES]
    return ()


def _own(model: Learned, features: Features) -> Outputs:
    inference = InferenceOptions(Machine(session_config()), Execution(), lambda *_: TO_LONGEST, "float32", _ROWS)
    with contextlib.closing(Computer(inference)) as computer:
        computer.load(model.trained)
        return computer.outputs(features)


def _outputs(model: Learned, features: Features, compute: Compute) -> Outputs:
    """Outputs of the head in row order, without padding."""
    fields = [field.sized(model.trained.config.hidden_size) for field in heads.of(model.trained.head).outputs]
    results = {field.name: features.empty(field) for field in fields}
    for rows in eval_batches(features, _ROWS, TO_LONGEST):
        batch = features.batch(rows, int(features.lengths[rows].max()))
        found = compute(batch)
        for field in fields:
            results[field.name][features.places(field.axis, rows)] = _real(field, found[field.name], batch)
    return results


def _real(field: Field, output: Array, batch: Mapping[str, Array]) -> npt.NDArray[Any]:
    real: npt.NDArray[Any] = output[batch["input_mask"].astype(bool)] if field.axis == TOKEN else output
    return real
