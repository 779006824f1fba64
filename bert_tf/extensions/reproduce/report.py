"""Writes reproduction.json and reproduction.md: a published run and one here side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.extensions.reproduce.facts import Published
from bert_tf.extensions.reproduce.verdicts import OUTSIDE, FormFound, Row
from bert_tf.io import atomic, documents

JSON_NAME, MARKDOWN_NAME = "reproduction.json", "reproduction.md"


class Distribution(NamedTuple):
    """The values of several seeds, and the published one among them."""

    published: float
    mean: float
    sd: float  # standard deviation of the sample
    lowest: float
    highest: float
    below: int  # number of seeds with a value below the published one
    seeds: int


@dataclasses.dataclass(frozen=True)
class Report:
    published: Published
    command: str  # that repeats the first run here
    rows: Sequence[Row]
    distributions: Mapping[str, Distribution]  # by quantity; empty for one seed
    collapsed: Mapping[int, str]  # reason by seed, for collapsed runs only
    forms: Sequence[FormFound] = ()  # of the log's lines

    @property
    def is_outside(self) -> bool:
        """Whether any comparable figure is outside the published ones."""
        return any(row.verdict == OUTSIDE for row in self.rows)


def write(folder: Path, report: Report) -> None:
    """Writes both files atomically; raises OutputError if the folder cannot be written."""
    contents = {
        "run": report.published.name,
        "published_command": report.published.command,
        "command": report.command,
        "rows": [dataclasses.asdict(row) for row in report.rows],
        "distributions": {what: distribution._asdict() for what, distribution in report.distributions.items()},
        "collapsed": report.collapsed,
        "forms": [form._asdict() for form in report.forms],
    }
    atomic.write_text(folder / JSON_NAME, documents.to_json(contents, indent=2) + "\n")
    atomic.write_text(folder / MARKDOWN_NAME, to_markdown(report))


def to_markdown(report: Report) -> str:
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
        table = _table(heads, [(what, *map(_cell, distribution)) for what, distribution in report.distributions.items()])
        parts.append(f"The published run is one draw; these are the draws here (below: seeds with a lower value).\n\n{table}")
    parts += [f"Seed {seed} collapsed: {why}." for seed, why in report.collapsed.items()]
    if report.forms:
        cells = [(form.form, str(form.lines), form.verdict, form.reason) for form in report.forms]
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
