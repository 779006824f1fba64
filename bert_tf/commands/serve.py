"""The serve command: serves a trained model over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import help_of
from bert_tf.commands.batch_flags import VERBOSITY, Settings, parse_with_name
from bert_tf.service.settings import SETTINGS, ServeConfig, configured

FLAGS = (*SETTINGS, VERBOSITY)


def main(argv: Sequence[str]) -> int:
    return run_command(
        lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; requests that were not yet answered are lost"
    )


def parse(argv: Sequence[str]) -> Settings[ServeConfig]:
    return parse_with_name(argv, FLAGS, configured, kinds="the folder of one run, or a checkpoint: serve out/mrpc")


def help_text() -> str:
    return help_of("Serves a trained model by HTTP (docs/serving.md): python -m bert_tf serve out/mrpc --port=8500", rows=FLAGS)


def _run(settings: Settings[ServeConfig]) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.service.running import run_service  # what imports HTTP waits until it is needed: --help is quick

    run_service(settings.config, verbosity=settings.verbosity)
    return 0
