"""What a run leaves in its output folder for people and scripts to read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from bert_tf import atomic
from bert_tf.tasks.base import SentenceExample


def write_evaluation(output_dir: str | os.PathLike[str], results: Mapping[str, float | int | str]) -> None:
    """Writes eval_results.txt (key = value, as the published script) and eval_results.json, and logs them.

    Raises:
      OutputError: a file cannot be written.
    """
    logging.info("***** Eval results *****")
    for key in sorted(results):
        logging.info("  %s = %s", key, results[key])
    folder = Path(output_dir)
    atomic.write_text(folder / "eval_results.txt", "".join(f"{key} = {results[key]}\n" for key in sorted(results)))
    atomic.write_text(folder / "eval_results.json", json.dumps(dict(results), indent=2, sort_keys=True) + "\n")


def write_predictions(
    output_dir: str | os.PathLike[str], examples: Sequence[SentenceExample], probabilities: np.ndarray, labels: Sequence[str]
) -> None:
    """Writes predictions.tsv (header, id, label, probability of each) and test_results.tsv (probabilities only, as published).

    Args:
      output_dir: the folder.
      examples: N of them.
      probabilities: [N, L], in their order.
      labels: L names.

    Raises:
      OutputError: a file cannot be written.
    """
    folder = Path(output_dir)
    numbers = [[str(p) for p in row] for row in probabilities]
    header = "\t".join(["id", "label", *(f"probability_{label}" for label in labels)])
    rows = [
        "\t".join([example.guid, labels[best], *row])
        for example, best, row in zip(examples, probabilities.argmax(axis=-1), numbers)
    ]
    atomic.write_text(folder / "predictions.tsv", "\n".join([header, *rows]) + "\n")
    atomic.write_text(folder / "test_results.tsv", "\n".join("\t".join(row) for row in numbers) + "\n")
    logging.info("predictions of %d examples are in %s", len(examples), folder / "predictions.tsv")
