"""The classifier command: data, features, training, evaluation, prediction, results."""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import logging

from bert_tf.commands import classifier_flags
from bert_tf.commands.beginning import begin
from bert_tf.commands.ending import ended
from bert_tf.commands.failure import reports_go_to


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    stopped = "stopped at once; the same command continues from the last checkpoint"
    return ended(lambda: _run(classifier_flags.parse(argv)), help_text=classifier_flags.help_text, stopped=stopped)


def _run(settings: classifier_flags.Settings) -> int:
    begin(settings.job.verbosity, settings.job.log_form)
    reports_go_to(settings.job.output_dir)
    idle = [f"--{row.name}" for row in classifier_flags.TPU if row.name in settings.given]
    if idle:
        logging.warning("there is no TPU here, so these change nothing: %s", ", ".join(idle))
    from bert_tf.commands import classifier_job, seeds  # TensorFlow waits until it is needed: --help is quick

    do = seeds.run if settings.job.seeds else classifier_job.run_job
    return do(settings, environment=os.environ)
