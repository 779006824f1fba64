"""The predict command: files of any size, or a pipe, by one checkpoint."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bert_tf.batch.job import PredictJob
from bert_tf.commands import batch_flags
from bert_tf.commands.batch_flags import COLUMNS, JOB, MACHINE, MODEL
from bert_tf.commands.beginning import begin
from bert_tf.commands.ending import ended
from bert_tf.commands.flags import Flag, help_line, read
from bert_tf.errors import FlagError
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.tasks.tables import FORMATS

KEYS = (
    Flag("checkpoint", str, None, "a checkpoint, or the folder of a run for its best, else its newest"),
    Flag("task_name", str, None, "what it was trained on, where no run_config.json is beside it"),
    Flag("predict_batch_size", int, None, "examples at a time; else by length, and a GPU's memory", 1),
    Flag("skip_bad_rows", bool, False, "leave out rows that cannot be used; else stop at the first"),
    Flag("output_format", str, None, f"{', '.join(FORMATS)}; else as the name of the output says", None, FORMATS),
    *COLUMNS,
    *MODEL,
)
FLAGS = (
    Flag(
        "input",
        str,
        None,
        "file to predict, as the task's test split or with the columns named below; - is a pipe",
    ),
    Flag("output", str, None, "file of predictions: .tsv, .csv or .jsonl, each also with .gz, else TSV; - is a pipe"),
    JOB,
    Flag("beam", bool, False, "as an Apache Beam pipeline; what follows -- goes to Beam: -- --runner=DirectRunner"),
    *KEYS,
    *MACHINE,
)

_REST = "--"


class Settings(NamedTuple):
    """The flags.

    Attributes:
      job: what to predict.
      machine: on what.
      verbosity: see `begin`.
      beam: arguments of Apache Beam; None without it.
    """

    job: PredictJob
    machine: MachineSettings
    verbosity: int
    beam: tuple[str, ...] | None


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    return ended(
        lambda: _run(parse(argv)),
        help_text=help_text,
        stopped="stopped; the same command goes on where it was; pipes and --beam start anew",
    )


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name and arguments, those of Beam after `--`.

    Raises:
      FlagError: a flag is unknown or has an unusable value, or the job file has a mistake.
      HelpAsked: instead of settings.
    """
    end = argv.index(_REST) if _REST in argv else len(argv)
    parsed, rest = read(argv[:end], FLAGS), tuple(argv[end + 1 :])
    if rest and not parsed["beam"].value:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    values = batch_flags.given(parsed, KEYS)
    ends = batch_flags.given(parsed, FLAGS[:2])
    if len(ends) == 1:
        raise FlagError(f"--{next(iter(ends))} needs the other of --input and --output")
    if ends:
        values["files"] = [ends]
    elif not parsed["job"].value:
        raise FlagError("--input and --output are required, or --job=FILE")
    job = batch_flags.make_job(PredictJob, parsed["job"].value, values)
    return Settings(job, *batch_flags.machine_settings(parsed), rest if parsed["beam"].value else None)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf predict --checkpoint=out/mrpc --input=FILE --output=FILE"
    lines = [f"Predicts files of any size (docs/batch_jobs.md): {example}", ""]
    return "\n".join([*lines, *map(help_line, FLAGS)]) + "\n"


def _run(settings: Settings) -> int:
    begin(settings.verbosity)
    from bert_tf.jobs.predict import Beam, predict  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    beam = None if settings.beam is None else Beam(settings.beam, functools.partial(_begin_worker, settings.verbosity))
    predict(settings.job, settings.machine, environment=os.environ, beam=beam)
    return 0


def _begin_worker(verbosity: int) -> Mapping[str, str]:
    """Begins in a process that Beam has started; returns its environment."""
    begin(verbosity)
    return os.environ
