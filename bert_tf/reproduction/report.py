"""reproduction.json and reproduction.md: a published run and one here, side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf import atomic, documents
from bert_tf.reproduction.facts import Published
from bert_tf.reproduction.forms import FormFound
from bert_tf.reproduction.verdicts import OUTSIDE, Row

JSON_NAME, MARKDOWN_NAME = "reproduction.json", "reproduction.md"


class Distribution(NamedTuple):
    """How the values of several seeds lie, and the published one among them.

    Attributes:
      sd: standard deviation of the sample.
      below: how many seeds have a lower value than the published one.
    """

    published: float
    mean: float
    sd: float
    lowest: float
    highest: float
    below: int
    seeds: int


@dataclasses.dataclass(frozen=True)
class Report:
    """All that is written.

    Attributes:
      published: what was to be reproduced.
      command: that repeats the first run here.
      rows: of the comparison.
      distributions: by what is distributed; none of one seed.
      collapsed: why, by seed; those that did not are left out.
      forms: of the lines of the log.
    """

    published: Published
    command: str
    rows: Sequence[Row]
    distributions: Mapping[str, Distribution]
    collapsed: Mapping[int, str]
    forms: Sequence[FormFound] = ()

    @property
    def is_outside(self) -> bool:
        """Whether something that is comparable is outside of what was published."""
        return any(row.verdict == OUTSIDE for row in self.rows)


def write(folder: Path, report: Report) -> None:
    """Writes both files, each whole or not at all.

    Args:
      folder: of both files.
      report: what they are to say.

    Raises:
      OutputError: the folder cannot be written.
    """
    contents = {
        "run": report.published.name,
        "published_command": report.published.command,
        "command": report.command,
        "rows": [dataclasses.asdict(row) for row in report.rows],
        "distributions": {what: found._asdict() for what, found in report.distributions.items()},
        "collapsed": report.collapsed,
        "forms": [found._asdict() for found in report.forms],
    }
    atomic.write_text(folder / JSON_NAME, documents.to_json(contents, indent=2) + "\n")
    atomic.write_text(folder / MARKDOWN_NAME, to_markdown(report))


def to_markdown(report: Report) -> str:
    """Returns the report for people."""
    rows = [(row.what, _cell(row.published), _cell(row.measured), row.verdict, row.reason) for row in report.rows]
    parts = [
        f"# {report.published.title}",
        f"Published:\n\n    {report.published.command}",
        f"Here:\n\n    {report.command}",
        "docs/reproduce.md explains rows and verdicts.",
        _table(("", "published", "here", "verdict", "reason"), rows),
    ]
    if report.distributions:
        heads = ("", *(field.replace("_", " ") for field in Distribution._fields))
        table = _table(heads, [(what, *map(_cell, found)) for what, found in report.distributions.items()])
        parts.append(f"The published run is one draw; these are the draws here (below: seeds with a lower value).\n\n{table}")
    parts += [f"Seed {seed} collapsed: {why}." for seed, why in report.collapsed.items()]
    if report.forms:
        cells = [(found.form, str(found.lines), found.verdict, found.reason) for found in report.forms]
        parts.append(f"Forms of lines in the published log:\n\n{_table(('', 'lines here', 'verdict', 'reason'), cells)}")
    return "\n\n".join(parts) + "\n"


def _cell(value: float | str) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [list(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths)] for row in cells]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
