"""The reproduce command: repeats a published run and compares the results."""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import logging

from bert_tf import log_form
from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.failure import reports_go_to
from bert_tf.cli.flags import by_name, help_of, read
from bert_tf.jobs.reproduce_config import SETTINGS, ReproduceConfig, configured
from bert_tf.operations.command import STOPPED
from bert_tf.reproduction.facts import RUNS

FLAGS = SETTINGS
OUTSIDE = 1


def main(argv: Sequence[str]) -> int:
    """Returns 1 if a comparable result is outside the published range, 0 if none is; else see `ending.run_command`."""
    return run_command(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped at once; the same command continues from the last checkpoint",
    )


def parse(argv: Sequence[str]) -> ReproduceConfig:
    named = [argument for argument in argv[1:2] if not argument.startswith("-")]
    values = read([argv[0], *argv[1 + len(named) :]], FLAGS)
    return configured(named[0] if named else None, **by_name(values, FLAGS))


def help_text() -> str:
    return help_of(f"Repeats a published run and compares: python -m bert_tf reproduce {'|'.join(RUNS)}", rows=FLAGS)


def _run(config: ReproduceConfig) -> int:
    setup_logging(logging.INFO, log_form.PUBLISHED)
    reports_go_to(config.folder)
    from bert_tf.jobs.reproduce import reproduce  # TensorFlow waits until it is needed: --help is quick
    from bert_tf.reproduction import report

    done = reproduce(config, environment=os.environ)
    if done.report is None:
        return STOPPED
    print(report.to_markdown(done.report), end="")
    return OUTSIDE if done.report.is_outside else 0
