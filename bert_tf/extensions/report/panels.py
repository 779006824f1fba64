"""Panels: sections of the page that extensions add."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bert_tf import extension
from bert_tf.extension import Extension
from bert_tf.extensions.report import charts, wording
from bert_tf.extensions.report.run_files import Run

if TYPE_CHECKING:
    import jinja2

_LEFT_OUT = '<p class="soft small">{} more runs have their own reports{}.</p>\n'
_MOST = 4  # runs that `of_each` shows: pictures and tables of one step are large


class Panel(NamedTuple):
    anchor: str  # of a link to it
    title: str
    html: str  # as it goes into the page: texts of others must be escaped, as `of_each` does
    first: bool = False  # before the results


def of_extensions(runs: Sequence[Run]) -> list[Panel]:
    """Panels of the extensions that have written to the folder of a run or of its series; the others are not imported."""
    return [
        panel for entry in extension.installed().values() if _wrote(entry, runs) if (panel := extension.load(entry.panel)(runs))
    ]


def _wrote(entry: Extension, runs: Sequence[Run]) -> bool:
    if not entry.panel:
        return False
    names = [name.rstrip("/") for name in (*entry.shows, *itertools.chain(*entry.files))]
    if any(any(run.folder.glob(name)) for run in runs for name in names):
        return True
    folders = {run.series for run in runs if run.series is not None}
    return any((folder / series.table).is_file() for folder in folders for series in entry.series if series.table)


def of_each(template: Path, runs: Sequence[Run], of_run: Callable[[Run], dict[str, Any] | None]) -> str:
    """Renders a template with what `of_run` returns for the first runs of which it returns anything; empty without one."""
    known = ((run.name, content) for run in runs if (content := of_run(run)))
    shown = list(itertools.islice(known, _MOST))
    if not shown:
        return ""
    page_part = environment().from_string(template.read_text(encoding="utf-8"))
    html = page_part.render(runs=shown, others=len(runs) > 1)
    if not len(shown) == _MOST < len(runs):
        return html
    return html + _LEFT_OUT.format(len(runs) - _MOST, extension.advice("report", ": <code>python -m bert_tf report DIR</code>"))


@functools.cache
def environment() -> jinja2.Environment:
    """Templates with the filters of the page, and the macros in macros.html.j2."""
    import jinja2  # imported only to make a page

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        number=wording.number,
        value=wording.value,
        duration=wording.duration,
        metric=wording.metric,
        task=wording.task,
        shortened=wording.shortened,
        flags=wording.flags,
        svg=_svg,
    )
    return templates


def _svg(chart: charts.Spec) -> str:
    import markupsafe

    return markupsafe.Markup(charts.svg(chart))  # Vega escapes the texts in it
