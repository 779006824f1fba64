"""The evaluate command: evaluates many checkpoints on labelled examples, in one table."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.failure import reports_go_to
from bert_tf.cli.flags import help_of
from bert_tf.commands.batch_flags import BEAM, VERBOSITY, Settings, parse_with_beam
from bert_tf.jobs.evaluate_config import SETTINGS, EvaluateConfig, configured
from bert_tf.log_form import log

FLAGS = (*SETTINGS, BEAM, VERBOSITY)

INCOMPLETE = 3


def main(argv: Sequence[str]) -> int:
    """Returns 3 if a checkpoint could not be evaluated (its row says why); else see `ending.run_command`."""
    return run_command(
        lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; the same command leaves out the rows that are done"
    )


def parse(argv: Sequence[str]) -> Settings[EvaluateConfig]:
    return parse_with_beam(argv, FLAGS, configured)


def help_text() -> str:
    example = "python -m bert_tf evaluate --task_name=MRPC --checkpoints=out/mrpc:all --output_dir=out/eval"
    return help_of(f"Evaluates many checkpoints in one process (docs/batch_jobs.md): {example}", rows=FLAGS)


def _run(settings: Settings[EvaluateConfig]) -> int:
    setup_logging(settings.verbosity)
    reports_go_to(settings.config.job.output_dir)
    from bert_tf.batch import glue, rows_text
    from bert_tf.jobs.evaluate import evaluate  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    done = evaluate(*settings.config, environment=os.environ, beam=settings.runner())
    print(rows_text.for_screen([*done.rows, *(row for row in done.failed if row not in done.rows)]), end="")
    score = glue.of(done.rows)
    if score is not None:
        print(score)
    log.info("the table is in %s", done.table)
    return INCOMPLETE if done.failed else 0
