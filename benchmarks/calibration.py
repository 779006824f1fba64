"""Calibration of trained classifiers over 20 random halves of their dev split.

    python -m benchmarks.calibration RUN... DATA_DIR

Each half fits temperature and 90 % sets, the other one is reported. Runs are copied: their own rules stay.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import cast

import numpy as np

import bert_tf
from bert_tf.extensions.calibrate.fit import Calibrated
from bert_tf.io.text_table import table

_HALVES = 20
_TITLES = ("run", "ECE before", "after", "by chance", "NLL before", "after", "temperature", "sets cover", "labels a set")


def measure(run: str, data_dir: str) -> list[str]:
    """Means over the halves, as cells."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(run, Path(folder) / "run")
        rows = [_figures(copy, data_dir, seed) for seed in range(1, _HALVES + 1)]
    return [run, *(f"{mean:.3f}" for mean in np.mean(rows, axis=0))]


def _figures(run: Path, data_dir: str, seed: int) -> list[float]:
    found = cast(Calibrated, bert_tf.calibrate(run, data_dir=data_dir, seed=seed, sets=0.9))
    before, after, (temperature,) = found.before, found.after, found.temperatures
    rule = (found.rule["set_coverage"], found.rule["set_size"])
    return [before.ece, after.ece, found.ece_by_chance, before.nll, after.nll, temperature, *rule]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration")
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("data_dir", metavar="DATA_DIR", help="folder of the task's files")
    flags = parser.parse_args()
    lines = table(_TITLES, [measure(run, flags.data_dir) for run in flags.runs])
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
