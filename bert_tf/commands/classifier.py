"""The classifier command: data, features, training, evaluation, prediction, results."""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import flags as absl_flags
from absl import logging

from bert_tf.commands import flags
from bert_tf.commands.ending import ended


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""

    def work() -> int:
        settings = flags.parse(argv)
        return 0 if settings is None else _run(settings)

    return ended(work, stopped="stopped at once; the same command continues from the last checkpoint")


def _run(settings: flags.Settings) -> int:
    from bert_tf.runtime import collector, noise  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    collector.collect_rarely()
    logging.set_verbosity(settings.job.verbosity)
    logging.use_absl_handler()
    absl_flags.FLAGS.mark_as_parsed()  # else the log begins with a complaint; our flags are not the global ones
    if settings.job.verbosity < 1:
        noise.quiet_before_import()
        noise.quiet_python()
    from bert_tf.commands import classifier_job, seeds

    do = seeds.run if settings.job.seeds else classifier_job.run_job
    return do(settings, environment=os.environ)
