"""The search command: the texts of an index that are nearest to others."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bert_tf.commands.batch_flags import VERBOSITY, given
from bert_tf.commands.beginning import setup_logging
from bert_tf.commands.ending import run_command
from bert_tf.commands.flags import Flag, help_of, read
from bert_tf.jobs.search_config import SETTINGS, SearchConfig, configured

if TYPE_CHECKING:
    from bert_tf.jobs.search import Found

JSON = Flag("json", bool, False, "print an object a query, with all that is known of each text")
FLAGS = (*SETTINGS, JSON, VERBOSITY)

_BLANKS = str.maketrans("\t\r\n", "   ")


class Settings(NamedTuple):
    """The flags."""

    config: SearchConfig
    json: bool
    verbosity: int


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.run_command`."""
    return run_command(lambda: _run(parse(argv)), help_text=help_text, stopped="stopped")


def parse(argv: Sequence[str]) -> Settings:
    """Reads a command line.

    Args:
      argv: name and arguments.

    Raises:
      FlagError: a flag is unknown, missing or has an unusable value.
      HelpAsked: instead of settings.
    """
    parsed = read(argv, FLAGS)
    return Settings(configured(**given(parsed, SETTINGS)), parsed[JSON.name].value, parsed[VERBOSITY.name].value)


def help_text() -> str:
    """Returns what --help prints."""
    example = "python -m bert_tf search --index=vectors.npz --query='Who has won?'"
    return help_of(f"Finds the nearest texts by cosine (docs/vectors.md): {example}", rows=FLAGS)


def _run(settings: Settings) -> int:
    setup_logging(settings.verbosity)
    from bert_tf.jobs.search import search  # TensorFlow, and what imports it, waits until it is needed: --help is quick

    several = settings.config.query is None
    for found in search(settings.config, environment=os.environ):
        sys.stdout.write(_as_json(found) if settings.json else _as_lines(found, several=several))
    return 0


def _as_json(found: Found) -> str:
    import dataclasses

    from bert_tf import documents

    hits = [{name: value for name, value in dataclasses.asdict(hit).items() if value is not None} for hit in found.hits]
    return documents.to_json({"id": found.query.guid, "query": " ||| ".join(found.query.texts), "hits": hits}) + "\n"


def _as_lines(found: Found, *, several: bool) -> str:
    """Returns a line for each text: of several queries the query's id, then cosine, id and text, with tabs between them."""
    lines = []
    for hit in found.hits:
        text = " ||| ".join(part for part in (hit.text, hit.text_b) if part is not None)
        cells = [*([found.query.guid] if several else []), f"{hit.score:.4f}", hit.id, text]
        lines.append("\t".join(cell.translate(_BLANKS) for cell in cells))
    return "".join(f"{line}\n" for line in lines)
