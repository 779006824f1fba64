"""Pretrain: trains on unlabelled text, with the defaults of the published run_pretraining.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bert_tf.library.keywords import takes
from bert_tf.operations import fine_tune
from bert_tf.training.fine_tune_config import DRIVERS, PRETRAIN, PRETRAIN_SECTIONS, PRETRAIN_SETTINGS, configured_pretraining


@takes(row for row in PRETRAIN_SETTINGS if row.name not in DRIVERS)
def pretrain(
    input_file: str | os.PathLike[str] | None = None, *, output_dir: str | os.PathLike[str] | None = None, **settings: Any
) -> Path:
    """Trains on unlabelled text and evaluates on held-out documents; as `python -m bert_tf pretrain`.

    The folder receives the command's files, `report.html` included. Repeating the call resumes a stopped training.

        folder = bert_tf.pretrain("texts/*.txt", output_dir="out/mine", num_train_steps=10_000)
        model = bert_tf.fine_tune("MRPC", init_checkpoint=folder)

    Args:
      input_file: text files or shards, comma-separated or as patterns; by default the bundled sample.
      output_dir: for checkpoints and results; by default out/pretraining.
      **settings: the command's flags, by name.

    Returns:
      The folder of the run, which `init_checkpoint` accepts.

    Raises:
      BertError: invalid settings or input, such as an unknown setting; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    return fine_tune.train(
        configured_pretraining(**{**settings, "input_file": input_file, "output_dir": output_dir})
    ).output_dir


COMMAND = fine_tune.command(
    PRETRAIN,
    "Pre-trains on unlabelled text: masked words, next sentences (docs/pretraining.md).",
    "python -m bert_tf pretrain --input_file='texts/*.txt' --output_dir=out/mine",
    "input_file init_checkpoint num_train_steps max_seq_length output_dir",
    "Rows, masks and their order depend only on the seeds: the same command continues where it stopped, to the same bits.",
    PRETRAIN_SECTIONS,
    configured_pretraining,
)
