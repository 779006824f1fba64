"""The classifier command: data, features, training, evaluation, prediction, results."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.commands import classifier_flags
from bert_tf.commands.training import run_training


def main(argv: Sequence[str]) -> int:
    return run_training(lambda: classifier_flags.read_command(argv), help_text=classifier_flags.help_text)
