"""The reproduce command: a published run again, and beside it what was published."""

from __future__ import annotations

import os
from collections.abc import Sequence

from absl import logging

from bert_tf import log_form
from bert_tf.commands.beginning import begin
from bert_tf.commands.classifier_flags import seed_numbers
from bert_tf.commands.ending import ended
from bert_tf.commands.failure import reports_go_to
from bert_tf.commands.flags import Flag, help_line, read
from bert_tf.commands.reproduction_settings import Settings
from bert_tf.errors import FlagError, unknown_name
from bert_tf.reproduction.facts import RUNS

FLAGS = (
    Flag("seeds", str, "1", "which to train: 1-5, or 1,3,7-9; the published run is one draw"),
    Flag("output_dir", str, None, "folder of reproduction.md and .json, and of the run of each seed; else out/RUN"),
    Flag("bert_base_dir", str, None, "folder of the checkpoint; else $BERT_BASE_DIR, the default checkpoint"),
    Flag("glue_dir", str, None, "folder that holds MRPC; else $GLUE_DIR, data/, the sample"),
    Flag("gpu_memory_limit_mb", int, None, "memory for tensors on the GPU, in MiB; else the published, on a larger GPU", 1),
    Flag("published_layout", bool, False, "compute as the published script, padding included"),
    Flag("num_train_steps", int, None, "train for fewer steps, to try it; what depends on the length is not compared", 1),
)


def main(argv: Sequence[str]) -> int:
    """Runs a command line.

    Returns:
      Exit status: 0 nothing that is comparable is outside of what was published, 1 something is; else see `ending.ended`.
    """
    return ended(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped at once; the same command continues from the last checkpoint",
    )


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name of the command, of the run, and flags.

    Raises:
      FlagError: there is no such run, a flag is unknown or has an unusable value.
      HelpAsked: instead of settings.
    """
    named = [argument for argument in argv[1:2] if not argument.startswith("-")]
    values = read([argv[0], *argv[1 + len(named) :]], FLAGS)
    if not named:
        raise FlagError(f"name the run to reproduce: {', '.join(RUNS)}")
    if named[0] not in RUNS:
        raise FlagError(unknown_name("run", named[0], RUNS))
    given = {row.name: values[row.name].value for row in FLAGS}
    seed_numbers(given["seeds"])
    given["output_dir"] = given["output_dir"] or f"out/{named[0]}"
    return Settings(RUNS[named[0]], **given)


def help_text() -> str:
    """Returns what --help prints."""
    lines = [f"Repeats a published run and compares: python -m bert_tf reproduce {'|'.join(RUNS)}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    begin(logging.INFO, log_form.PUBLISHED)
    reports_go_to(settings.output_dir)
    from bert_tf.commands import reproduction_job  # TensorFlow waits until it is needed: --help is quick

    return reproduction_job.run(settings, environment=os.environ)
