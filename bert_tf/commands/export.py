"""The export command: converts a trained model for other software."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, help_of, read_with_words
from bert_tf.commands.batch_flags import VERBOSITY, given
from bert_tf.errors import FlagError
from bert_tf.jobs.export_config import FORMAT, SETTINGS, ExportConfig, configured
from bert_tf.text_table import table

COMPARE = Flag("compare", bool, False, "print how exports of several runs differ from the package, in place of keeping them")
FLAGS = (*SETTINGS, COMPARE, VERBOSITY)
_COLUMNS = ("format", "family", "largest difference", "MB", "seconds to open", "metric", "change in points")


class Settings(NamedTuple):
    config: ExportConfig | None  # None for a comparison
    compared: tuple[str, ...]  # runs to compare
    formats: tuple[str, ...]  # to compare; empty: all that can be opened here
    verbosity: int


def main(argv: Sequence[str]) -> int:
    return run_command(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped; nothing was written")


def parse(argv: Sequence[str]) -> Settings:
    runs, parsed = read_with_words(argv, FLAGS)
    verbosity = parsed[VERBOSITY.name].value
    if parsed[COMPARE.name].value:
        if not runs:
            raise FlagError("export --compare: name one run at least")
        formats = parsed[FORMAT.name].value
        return Settings(None, tuple(runs), (formats,) if formats else (), verbosity)
    if len(runs) != 1:
        raise FlagError(f"export: name one run or checkpoint, not {len(runs)}: python -m bert_tf export RUN --format=...")
    return Settings(configured(runs[0], **given(parsed, SETTINGS)), (), (), verbosity)


def help_text() -> str:
    example = "python -m bert_tf export RUN --format=saved_model --output=DIR"
    return help_of(f"Writes a trained model as what other software runs (docs/export.md): {example}", rows=FLAGS)


def _run(settings: Settings) -> int:
    setup_logging(settings.verbosity)
    if settings.config is None:
        return _compare(settings)
    from bert_tf.jobs.export import export  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    export(settings.config, environment=os.environ)
    return 0


def _compare(settings: Settings) -> int:
    from bert_tf.export.opening import OPENERS
    from bert_tf.jobs.export_comparison import compare

    found = compare(settings.compared, settings.formats or tuple(OPENERS), environment=os.environ)
    print(*table(_COLUMNS, [tuple(map(_shown, row)) for row in found], left=(0, 1, 5)), sep="\n")
    return 0


def _shown(value: object) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
