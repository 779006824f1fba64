"""Checks of a converted model before it is written: its outputs are the package's, and reduced precision costs little.

Shapes: E examples, G groups of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from bert_tf.batch import graph
from bert_tf.batch.engine import Batch, Compute
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError, CheckpointError, DataError
from bert_tf.extensions.engines.converted_engine import ConvertedEngine
from bert_tf.extensions.export.job import ExportJob, float32_inference
from bert_tf.features.columns import Features
from bert_tf.fields import INPUTS, TOKEN
from bert_tf.io import documents
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Family, Outputs

FILE = "gate.json"

_MOST = 1e-4  # relative to the largest output: more than rounding explains
_ROWS, _TOKENS = 8, 32  # of the random batch on which outputs are compared
_GROUPS = 20
_LEVEL = 0.95
_POINTS = 100.0


def require_agreement(trained: Trained, compute: Compute) -> None:
    """Compares outputs with TensorFlow's on random rows in float32, logs the largest difference; raises CheckpointError."""
    batch = _rows(trained)

    def build() -> tuple[graph.Tensors, graph.Tensors]:
        inputs = graph.inputs(trained)
        return inputs, graph.compute(trained, inputs, graph.PLAIN).logits

    with graph.loaded(trained, build) as (session, (inputs, logits)):
        expected = session.run(dict(logits), {inputs[name]: values for name, values in batch.items()})
    outputs = compute(batch)
    for field in trained.outputs:  # vectors of padding mean nothing: in a window without real tokens they may be any
        real = batch["input_mask"] > 0 if field.axis == TOKEN else slice(None)
        name, wanted = field.name, expected[field.name][real]
        difference = float(np.abs(outputs[name][real] - wanted).max())
        largest = float(np.abs(wanted[np.abs(wanted) < np.float32(1e29)]).max(initial=1.0))  # span padding is not a real value
        if not difference <= _MOST * largest:
            raise CheckpointError(f"{trained.prefix}: {name} differ from TensorFlow's by {difference:.1e}; nothing is exported")
        log.info("%s differ from TensorFlow's by %.1e at most, on %d random rows", name, difference, _ROWS)


def _rows(trained: Trained) -> Batch:
    rng = np.random.default_rng(0)
    tokens = min(_TOKENS, trained.max_seq_length)
    lengths = np.concatenate([[tokens], rng.integers(1, tokens + 1, _ROWS - 1)])[:, None]
    mask = np.arange(tokens) < lengths
    ids = rng.integers(0, trained.config.vocab_size, mask.shape) * mask
    segments = mask & (np.arange(tokens) >= (lengths + 1) // 2)
    names = [field.name for field in INPUTS]
    return {name: array.astype(np.int32) for name, array in zip(names, (ids, mask, segments))}


class GateError(BertError):
    """Reduced precision costs more than allowed."""


@dataclasses.dataclass(frozen=True)
class Change:
    """Change of one metric, in points."""

    full: float  # in float32
    reduced: float
    interval: tuple[float, float] | None  # 95 %, of reduced minus full; None: too few examples

    @property
    def points(self) -> float:
        return self.reduced - self.full


def measure(exported: ExportJob, compute: Compute, folder: Path) -> None:
    """Compares the reduced model with TensorFlow in float32 and writes `FILE`, unless any loss is allowed.

    Raises GateError if a metric loses too much, DataError if there are no labelled examples.
    """
    options, by_split = exported.options, {}
    if math.isinf(options.max_loss_of_metric):
        return
    for name, examples in exported.labelled().items():
        if not examples:
            raise DataError("no data to measure reduced precision; give --gate_data", name)
        changes = _changes(exported, compute, examples)
        by_split[name] = {"examples": len(examples), "metrics": {key: _told(change) for key, change in changes.items()}}
        for key, change in changes.items():
            log.info("%s: %s in %s %+.2f points (%s)", name, key, options.precision, change.points, _within(change))
            if change.points < -options.max_loss_of_metric:
                raise GateError(
                    f"--precision={options.precision}: {key} of {name} falls from {change.full:.2f} to {change.reduced:.2f},"
                    f" {-change.points:.2f} points (95 %: {_within(change)}), more than --max_loss_of_metric="
                    f"{options.max_loss_of_metric}; take another precision, or allow more"
                )
    record = {"precision": options.precision, "max_loss_of_metric": options.max_loss_of_metric, "data": by_split}
    (folder / FILE).write_text(documents.to_json(record, indent=2) + "\n", encoding="utf-8")


def _changes(exported: ExportJob, compute: Compute, examples: Sequence[Any]) -> Mapping[str, Change]:
    """Change of each metric with its interval, by a jackknife that leaves out one group of examples at a time.

    The same examples are left out of both models, whatever the family and its metrics.
    """
    family = exported.family
    inference = float32_inference()
    reduced = ConvertedEngine(inference, exported.options.precision, lambda *_: compute)
    groups = np.array_split(np.arange(len(examples)), min(_GROUPS, len(examples)))
    features = family.features(examples, exported.trained.tokenizer, exported.trained.limits)
    values = []
    for engine in (inference.engine(), reduced):
        with contextlib.closing(engine):
            engine.load(exported.trained)
            outputs = [engine.outputs(features.taken(group)) for group in groups]
        every = range(len(groups))
        measured = functools.partial(_metrics, family, features, examples, groups, outputs)
        values.append((measured(every), [measured([other for other in every if other != left] or every) for left in every]))
    (full, full_without), (less, less_without) = values
    return {
        name: Change(
            full[name],
            less[name],
            _interval(less[name] - full[name], [b[name] - a[name] for a, b in zip(full_without, less_without)]),
        )
        for name in family.metrics
        if name in full
    }


def _metrics(
    family: Family,
    features: Features,
    examples: Sequence[Any],
    groups: Sequence[npt.NDArray[np.int64]],
    outputs: Sequence[Outputs],
    numbers: Sequence[int],
) -> Mapping[str, float]:
    """Metrics in points over the groups of these numbers; `outputs` are those of each group."""
    rows = np.concatenate([groups[number] for number in numbers])
    together = {name: np.concatenate([outputs[number][name] for number in numbers]) for name in outputs[0]}
    kept = [examples[row] for row in rows]
    measured = family.evaluation(family.predictions(together, features.taken(rows), kept), kept)
    return {name: value * _POINTS for name, value in measured.metrics.items()}


def _interval(change: float, without: Sequence[float]) -> tuple[float, float] | None:
    """Jackknife interval of a change from its values without each of G groups (Tukey, 1958)."""
    number = len(without)
    if number < 2:
        return None
    each: npt.NDArray[np.float64] = number * change - (number - 1) * np.asarray(without)
    half = float(stats.t.ppf((1 + _LEVEL) / 2, number - 1) * each.std(ddof=1) / np.sqrt(number))
    return change - half, change + half


def _told(change: Change) -> dict[str, Any]:
    rounded = None if change.interval is None else [round(end, 4) for end in change.interval]
    return {
        "float32": round(change.full, 4),
        "reduced": round(change.reduced, 4),
        "change": round(change.points, 4),
        "interval_95": rounded,
    }


def _within(change: Change) -> str:
    return "too few examples" if change.interval is None else "{:+.2f} to {:+.2f}".format(*change.interval)
