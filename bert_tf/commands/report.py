"""The report command: writes the page of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import atomic
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, help_of, read_with_words
from bert_tf.jobs import report

FLAGS = (
    Flag("output", str, None, "file to write; else DIR/report.html, of several DIRs ./report.html"),
    Flag("redact", bool, False, "first cut absolute paths in run_config.json to their names, to share DIR; they are lost"),
)


class Settings(NamedTuple):
    folders: tuple[Path, ...]
    output: Path
    redact: bool


def main(argv: Sequence[str]) -> int:
    return run_command(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; no page was written")


def parse(argv: Sequence[str]) -> Settings:
    folders, values = read_with_words(argv, FLAGS)
    paths = tuple(map(Path, folders))
    return Settings(paths, report.target(paths, values["output"].value), values["redact"].value)


def help_text() -> str:
    return help_of(
        "Makes the page of a run, or of several side by side: python -m bert_tf report DIR [DIR ...]",
        "A DIR is the --output_dir of a training; that of --seeds is one line, the mean in a band; DIR/seed-* are a line each.",
        "While it trains, add --output=FILE.",
        rows=FLAGS,
    )


def _run(settings: Settings) -> int:
    report.write(settings.folders, settings.output, redact=settings.redact)
    if not atomic.is_written_into(settings.output):  # the page alone is to be read there
        print(settings.output)
    return 0
