"""The evaluate command: many checkpoints by labelled examples, one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags, logging

from bert_tf.batch.job import EvaluateJob
from bert_tf.commands import batch_flags
from bert_tf.commands.batch_flags import JOB, MACHINE, MODEL
from bert_tf.commands.beginning import begin
from bert_tf.commands.ending import ended
from bert_tf.commands.failure import reports_go_to
from bert_tf.commands.flags import Flag, help_line, read
from bert_tf.errors import FlagError
from bert_tf.jobs.machine_settings import MachineSettings

KEYS = (
    Flag("output_dir", str, None, "folder of results.tsv and results.json"),
    Flag("eval_batch_size", int, None, "examples at a time; else by length, and a GPU's memory", 1),
    *MODEL,
)
FLAGS = (
    Flag(
        "checkpoints", str, None, "with commas: prefixes, folders for their best or newest, FOLDER:all for all steps, patterns"
    ),
    Flag("task_name", str, None, "with commas: tasks whose dev splits to evaluate on"),
    Flag("data_dir", str, None, "folder of the task's files; else $GLUE_DIR/TASK, data/TASK, the sample"),
    JOB,
    *KEYS,
    *MACHINE,
)


INCOMPLETE = 3


class Settings(NamedTuple):
    """The flags."""

    job: EvaluateJob
    machine: MachineSettings
    verbosity: int


def main(argv: Sequence[str]) -> int:
    """Runs a command line.

    Returns:
      Exit status: 0 done, 3 a checkpoint could not be evaluated and its row says why; else see `ending.ended`.
    """
    return ended(
        lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; the same command leaves out the rows that are done"
    )


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name and arguments.

    Raises:
      FlagError: a flag is unknown or has an unusable value, or the job file has a mistake.
      HelpAsked: instead of settings.
    """
    parsed = read(argv, FLAGS)
    values = batch_flags.given(parsed, KEYS)
    if parsed["checkpoints"].value:
        values["checkpoints"] = _names(parsed, "checkpoints")
    folder = parsed["data_dir"].value
    if parsed["task_name"].value:
        values["tasks"] = [{"name": name, **({"data_dir": folder} if folder else {})} for name in _names(parsed, "task_name")]
    elif folder:
        raise FlagError("--data_dir is the folder of a task: name it with --task_name")
    elif not parsed["job"].value:
        raise FlagError("--task_name is required, or --job=FILE")
    job = batch_flags.make_job(EvaluateJob, parsed["job"].value, values)
    return Settings(job, *batch_flags.machine_settings(parsed))


def _names(parsed: flags.FlagValues, flag: str) -> list[str]:
    names = parsed[flag].value.split(",")
    if not all(names):
        raise FlagError(f"--{flag}={parsed[flag].value}: a name is empty; there is a comma too many")
    return list(names)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf evaluate --task_name=MRPC --checkpoints=out/mrpc:all --output_dir=out/eval"
    lines = [f"Evaluates many checkpoints in one process (docs/batch_jobs.md): {example}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    begin(settings.verbosity)
    reports_go_to(settings.job.output_dir)
    from bert_tf.batch import glue, rows_text
    from bert_tf.jobs.evaluate import evaluate  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    done = evaluate(settings.job, settings.machine, environment=os.environ)
    print(rows_text.for_screen([*done.rows, *(row for row in done.failed if row not in done.rows)]), end="")
    score = glue.of(done.rows)
    if score is not None:
        print(score)
    logging.info("the table is in %s", done.table)
    return INCOMPLETE if done.failed else 0
