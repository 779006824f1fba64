"""The classifier command: data, features, training, evaluation, prediction, results."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from absl import flags as absl_flags
from absl import logging

from bert_tf.commands import flags
from bert_tf.errors import BertError, PreflightError
from bert_tf.runtime.closing import leave


def main(argv: Sequence[str]) -> int:
    """Runs a command line.

    Returns:
      Exit status: 0 done, 2 a problem that the user can mend, 75 another machine is gone, 130 stopped by Ctrl-C.
    """
    try:
        settings = flags.parse(argv)
        return leave(0 if settings is None else _run(settings))
    except BertError as error:
        for problem in error.problems if isinstance(error, PreflightError) else (str(error),):
            print(f"error: {' '.join(problem.splitlines())}", file=sys.stderr)  # a file that is quoted may hold line ends
        return leave(error.status)
    except KeyboardInterrupt:
        print("error: stopped at once; the same command continues from the last checkpoint", file=sys.stderr)
        return leave(130)


def _run(settings: flags.Settings) -> int:
    from bert_tf.runtime import collector, noise  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    collector.collect_rarely()
    logging.set_verbosity(settings.job.verbosity)
    logging.use_absl_handler()
    absl_flags.FLAGS.mark_as_parsed()  # else the log begins with a complaint; our flags are not the global ones
    if settings.job.verbosity < 1:
        noise.quiet_before_import()
        noise.quiet_python()
    from bert_tf.commands import classifier_job

    return classifier_job.run_job(settings, environment=os.environ)
