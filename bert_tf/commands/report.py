"""The report command: the page of a run, or of several side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from absl import logging

from bert_tf import atomic
from bert_tf.commands.ending import ended
from bert_tf.commands.flags import Flag, help_line, read_with_words
from bert_tf.errors import BertError, FlagError, OutputError

FLAGS = (Flag("output", str, None, "file to write; else DIR/report.html, of several DIRs ./report.html"),)

_NAME = "report.html"
_ELSEWHERE = "write the page elsewhere with --output=FILE"


class Settings(NamedTuple):
    """What is asked for."""

    folders: tuple[Path, ...]
    output: Path


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    return ended(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; no page was written")


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line: folders and flags in any order.

    Raises:
      FlagError: a flag is unknown, or no folder is named.
      HelpAsked: instead of settings.
    """
    folders, values = read_with_words(argv, FLAGS)
    if not folders:
        raise FlagError("report: name the output folder of a run, or of several to compare")
    default = Path(folders[0]) / _NAME if len(folders) == 1 else Path(_NAME)
    return Settings(tuple(map(Path, folders)), Path(values["output"].value or default))


def help_text() -> str:
    """Returns what --help prints."""
    lines = [
        "Makes the page of a run, or of several side by side: python -m bert_tf report DIR [DIR ...]",
        "A DIR is the --output_dir of a training; that of --seeds is one line, the mean in a band; DIR/seed-* are a line each.",
        "While it trains, add --output=FILE.",
        "",
        *map(help_line, FLAGS),
    ]
    return "\n".join(lines) + "\n"


def at_end(folder: Path) -> None:
    """Writes the page of a run that ends; one that cannot be made does not spoil the run, and is only warned of."""
    try:
        from bert_tf.report import page, run_files  # the charts' library is imported when there is something to draw

        page.write(folder / _NAME, run_files.read([folder]))
        logging.info("the page of the run is %s", folder / _NAME)
    except Exception as error:
        reason = str(error) if isinstance(error, (BertError, ImportError)) else repr(error)
        logging.warning("no %s: %s", _NAME, reason)


def _run(settings: Settings) -> int:
    from bert_tf import lock
    from bert_tf.report import page, run_files

    runs = run_files.read(settings.folders)
    into_run = settings.output.parent.resolve() in {folder.resolve() for folder in settings.folders}
    try:
        with lock.writing_folder(settings.output.parent, instead=_ELSEWHERE) if into_run else contextlib.nullcontext():
            page.write(settings.output, runs)
    except ImportError as error:
        raise OutputError(f"{settings.output}: not made: {error}; pip install jinja2 vl-convert-python") from error
    if not atomic.is_written_into(settings.output):  # the page alone is to be read there
        print(settings.output)
    return 0
