"""Writes the page of an audit: a single file that loads nothing and runs only its own script."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from bert_tf.audit import findings
from bert_tf.audit.findings import Finding
from bert_tf.report import scripts

_MOST = 1000  # findings of a kind; the table has all


def render(task: str, ranked: Sequence[Finding], summary: str, separator: str) -> str:
    import jinja2
    import markupsafe

    template, script = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("page.html.j2", "page.js"))
    kinds = itertools.groupby(ranked, key=lambda one: one.problem)
    text = jinja2.Template(template, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).render(
        task=task,
        summary=summary,
        columns=findings.COLUMNS,
        rows=[one.cells(separator) for _, kind in kinds for one in itertools.islice(kind, _MOST)],
        most=_MOST,
        script=markupsafe.Markup(script),  # none of it is from the data
        script_source=scripts.source(script),
    )
    return text.encode("utf-8", "replace").decode()
