"""Calibration of trained classifiers over 20 random halves of their dev split.

    python -m benchmarks.calibration RUN... DATA_DIR

Each half fits temperature and 90 % sets, the other one is reported.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.session import Predictor
from bert_tf.batch.tensorflow_engine import InferenceOptions
from bert_tf.io.text_table import table
from bert_tf.tasks.base import DEV
from bert_tf.tasks.decision import DECISION
from bert_tf.training import batch_machine, calibration, sources
from bert_tf.training.settings import MachineSettings, RuleSettings

_HALVES = 20
_TITLES = ("run", "ECE before", "after", "by chance", "NLL before", "after", "temperature", "sets cover", "labels a set")


def measure(run: str, data_dir: str, inference: InferenceOptions) -> list[str]:
    """Means over the halves, as cells."""
    model = sources.find(run, ModelOverrides(), environment=os.environ)
    plain = dataclasses.replace(model, record={name: value for name, value in model.record.items() if name != DECISION})
    family, (split, *_) = plain.task.family, plain.task.splits(data_dir, DEV)
    examples = plain.task.examples(data_dir, split)
    with contextlib.closing(Predictor(plain, family, inference)) as predictor:
        logits = predictor.predictions(examples)
    places = {id(example): place for place, example in enumerate(examples)}

    def predict(half: Sequence[Any]) -> Any:
        return logits[[places[id(example)] for example in half]]

    rows = []
    for seed in range(1, _HALVES + 1):
        found = calibration.calibrate(family, predict, examples, data=split, seed=seed, rules=RuleSettings(sets=0.9))
        (temperature,) = found.temperatures
        before, after, rule = found.before, found.after, found.rule
        figures = (before.ece, after.ece, found.ece_by_chance, before.nll, after.nll)
        rows.append([*figures, temperature, rule["set_coverage"], rule["set_size"]])
    return [run, *(f"{mean:.3f}" for mean in np.mean(rows, axis=0))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("data_dir", metavar="DATA_DIR", help="folder of the task's files")
    flags = parser.parse_args()
    inference = batch_machine.inference(MachineSettings(), None, environment=os.environ)
    lines = table(_TITLES, [measure(run, flags.data_dir, inference) for run in flags.runs])
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
